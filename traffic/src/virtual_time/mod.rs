// SPDX-License-Identifier: Apache-2.0
//! Ports whose other end lives in virtual time: emulated gateways that run only as far as the generator lets them.

pub mod branch;
pub mod console;
pub mod link;
pub mod memory;
pub mod neighbours;
pub mod trial;
pub mod world;
