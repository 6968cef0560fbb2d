// SPDX-License-Identifier: Apache-2.0
//! Ports in virtual time: their other ends are emulated gateways, which run only as far as the generator allows.
//!
//! This folder imports `trial`. It starts no threads, and uses no interfaces of the host.

pub mod branch;
pub mod console;
pub mod console_command;
pub mod link;
pub mod link_port;
pub mod memory;
pub mod resolve_command;
pub mod virtual_trial;
pub mod world;
