// SPDX-License-Identifier: Apache-2.0
//! The contract with the controller: one JSON object a line, commands on stdin, events on stdout.
//!
//! Exactly one final event answers each command (`hello`, `opened`, `closed`, `resolved`, `trial`, `console`,
//! `branched`, or `error`); a trial sends `progress` before it, with ESP also `crypto`. Each `*_ns` is
//! CLOCK_MONOTONIC, or virtual time where the ports are links. Frame sizes count the Ethernet FCS (RFC 1242), which
//! the interface adds: 64 means 60 bytes handed to it.
//!
//! This folder imports nothing of the program but `failure`.

mod command;
mod event;
#[cfg(test)]
pub mod sample;
mod trial_request;
mod trial_result;

pub use command::*;
pub use event::*;
pub use trial_request::*;
pub use trial_result::*;

/// Raised when a field changes its meaning or goes away.
pub const PROTOCOL: u32 = 2;
