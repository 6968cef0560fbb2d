// SPDX-License-Identifier: Apache-2.0
//! A deterministic network processor: reads a request as JSON from standard input, runs it, writes the answer as JSON.
//!
//! Engines of hardware threads run RV32 code; they have no cache, and memories that they share with finite ports and
//! queues. Nothing of the host is in what comes out. The modules below are listed from the top down.

mod machine;

mod engine;
mod thread;

mod memories;
mod port;

mod code;
mod program;

mod arithmetic;
mod instruction;

mod addresses;
mod mix;
mod request;

#[cfg(test)]
mod tests;

use std::io::Read;
use std::process::ExitCode;

fn main() -> ExitCode {
    match asked() {
        Ok(answer) => {
            println!("{answer}");
            ExitCode::SUCCESS
        }
        Err(what) => {
            eprintln!("espbench-ixp: {what}");
            ExitCode::FAILURE
        }
    }
}

fn asked() -> Result<String, String> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| format!("standard input: {error}"))?;
    let request: request::Request =
        serde_json::from_str(&text).map_err(|error| format!("the request: {error}"))?;
    let file = request.program.display().to_string();
    let elf = std::fs::read(&request.program).map_err(|error| format!("{file}: {error}"))?;
    let program = program::read(&elf).map_err(|what| format!("{file}: {what}"))?;
    let answer = machine::run(&request, &program).map_err(|what| format!("{file}: {what}"))?;
    serde_json::to_string(&answer).map_err(|error| format!("the answer: {error}"))
}
