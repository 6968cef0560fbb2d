// SPDX-License-Identifier: Apache-2.0
//! Sending: the schedule of a stream's frames, and the threads or XDP programs that send the frames when they are due.
//!
//! This folder imports `esp`, `wire` and `xdp`, but not `receive`.

pub mod frame_source;
pub mod live_sender;
pub mod live_streams;
pub mod outgoing;
pub mod pace;
pub mod packet_sender;
pub mod report;
pub mod waking;
