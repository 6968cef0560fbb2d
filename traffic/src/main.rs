// SPDX-License-Identifier: Apache-2.0
//! The native traffic generator of espbench.
//!
//! The folders below are listed from the top down: each imports only those that follow it.

mod commands;

mod real_time;
mod virtual_time;

mod port;
mod trial;

mod receive;
mod send;

mod esp;
mod wire;
mod xdp;

mod count;
mod frame;
mod host;

mod failure;
mod fates;
mod protocol;

use clap::Parser;

use commands::cli::{Arguments, Command};
use commands::{serve, shell_trial};

fn main() -> std::process::ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Serve => {
            serve::serve();
            Ok(())
        }
        Command::Trial(arguments) => shell_trial::run(&arguments),
        Command::Wire(arguments) => commands::wire::run(&arguments),
        Command::Link(arguments) => virtual_time::memory::create(
            &arguments.path,
            arguments.latency_ns,
            arguments.step_ns,
            8_000 / arguments.mbps.max(1),
            arguments.errors.errors(),
        ),
    };
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("espbench-traffic: {failure}");
            std::process::ExitCode::FAILURE
        }
    }
}
