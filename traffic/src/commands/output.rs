// SPDX-License-Identifier: Apache-2.0
//! The output of the commands: one event a line on stdout.

use std::io::Write;

use crate::failure::Failure;
use crate::protocol::Event;

/// Writes an event. Ends the process if nobody reads stdout any more.
pub fn emit(event: &Event) {
    let line = serde_json::to_string(event).unwrap_or_else(|error| {
        format!("{{\"event\":\"error\",\"message\":\"writing an event: {error}\",\"hint\":\"report this\"}}")
    });
    let mut out = std::io::stdout().lock();
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

/// Writes a failure as an event.
pub fn emit_failure(failure: Failure) {
    emit(&Event::Error {
        message: failure.message,
        hint: failure.hint,
    });
}
