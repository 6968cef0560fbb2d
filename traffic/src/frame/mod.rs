// SPDX-License-Identifier: Apache-2.0
//! Frames as bytes: test frames, noise, and the messages of ARP and Neighbour Discovery. All functions are pure.
//!
//! This folder imports `protocol`.

pub mod flows;
pub mod headers;
pub mod neighbours;
pub mod noise;
pub mod octets;
pub mod sizes;
pub mod template;
pub mod test_header;
