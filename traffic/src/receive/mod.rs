// SPDX-License-Identifier: Apache-2.0
//! Receiving: every frame that arrives at a port is judged and counted, and its latency is measured.
//!
//! This folder imports `esp`, `wire` and `xdp`, but not `send`.

pub mod kernel_receiver;
pub mod port_count;
pub mod stream_count;
pub mod verify;
