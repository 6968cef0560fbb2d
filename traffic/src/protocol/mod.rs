// SPDX-License-Identifier: Apache-2.0
//! The protocol with the controller: one JSON object per line, commands on stdin, events on stdout.
//!
//! Exactly one final event answers each command (`hello`, `opened`, `closed`, `resolved`, `trial`, `console`,
//! `branched`, or `error`). A trial sends events `progress` before its final event and, with ESP, also `crypto`. Each
//! `*_ns` is a time of CLOCK_MONOTONIC or, if the ports are links, of virtual time. Frame sizes include the Ethernet
//! FCS (RFC 1242), which the interface adds: for size 64 the generator hands over 60 bytes.
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

/// Version of the protocol. It is raised when a field changes its meaning or is removed.
pub const PROTOCOL: u32 = 2;
