// SPDX-License-Identifier: Apache-2.0
//! Ports whose other end lives in virtual time: emulated gateways that run only as far as the generator lets them.
//!
//! This folder imports `trial`; it has no thread and no port of the host.

pub mod branch;
pub mod console;
pub mod console_command;
pub mod link;
pub mod link_port;
pub mod memory;
pub mod resolve_command;
pub mod virtual_trial;
pub mod world;
