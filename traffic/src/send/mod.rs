// SPDX-License-Identifier: Apache-2.0
//! Sending: when each frame of a stream is due, and the threads or programs that let it leave then.
//!
//! This folder imports `esp`, `wire` and `xdp`; it knows nothing of receiving.

pub mod frame_source;
pub mod live_sender;
pub mod live_streams;
pub mod outgoing;
pub mod pace;
pub mod packet_sender;
pub mod report;
pub mod waking;
