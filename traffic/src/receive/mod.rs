// SPDX-License-Identifier: Apache-2.0
//! Receiving: every frame that arrives at a port is judged, counted and timed.
//!
//! This folder imports `esp`, `wire` and `xdp`; it knows nothing of sending.

pub mod kernel_receiver;
pub mod port_count;
pub mod stream_count;
pub mod verify;
