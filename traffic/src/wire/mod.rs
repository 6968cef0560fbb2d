// SPDX-License-Identifier: Apache-2.0
//! The ways to the wire by sockets: what a sender and a receiver of frames can do, by AF_PACKET and by AF_XDP.
//!
//! This folder imports `xdp` (AF_XDP needs a program) and `host`.

pub mod af_packet;
pub mod af_xdp;
pub mod interface;
pub mod shared_rings;
pub mod socket;

use std::time::Duration;

use crate::failure::Outcome;

/// Most frames that are handed over together: one system call takes so many.
pub const BATCH: usize = 64;

/// Frames ready to be sent, in buffers that are reused.
pub struct Batch {
    buffers: Vec<Vec<u8>>,
    pub lengths: Vec<usize>,
}

impl Batch {
    /// Makes `frames` buffers, each beginning as a copy of `template`.
    pub fn new(frames: usize, template: &[u8]) -> Self {
        Batch {
            buffers: vec![template.to_vec(); frames],
            lengths: vec![0; frames],
        }
    }

    pub fn buffer(&mut self, index: usize) -> &mut [u8] {
        &mut self.buffers[index]
    }

    pub fn frame(&self, index: usize) -> &[u8] {
        &self.buffers[index][..self.lengths[index]]
    }
}

/// The fate of the frames handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Number of frames dealt with, from the first on.
    pub taken: usize,
    /// Number of these that the next device's full ring dropped at once.
    pub refused: usize,
}

/// A sender of frames to one port.
pub trait FrameSender: Send {
    /// Hands over frames `range` of the batch without blocking; fewer are taken when there is no room.
    fn send(&mut self, batch: &Batch, range: std::ops::Range<usize>) -> Outcome<Sent>;

    /// Returns when all that was taken has left; a failure if it does not leave.
    fn finish(&mut self) -> Outcome<()> {
        Ok(())
    }
}

/// A frame as the port received it.
pub struct RxFrame<'a> {
    pub bytes: &'a [u8],
    /// Length before the port cut it.
    pub wire_length: usize,
    /// Time of arrival by CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Is true if the sender left the checksum to an offload that has not happened.
    pub checksum_pending: bool,
    pub vlan_tagged: bool,
}

/// A receiver of frames from one port.
pub trait FrameReceiver: Send {
    /// Forgets what is waiting and starts to count afresh.
    fn begin(&mut self) -> Outcome<()>;
    /// Waits at most `timeout` and hands every frame that is there to `each`.
    fn receive(&mut self, timeout: Duration, each: &mut dyn FnMut(&RxFrame)) -> Outcome<()>;
    /// Returns how many frames the port had no room for since `begin`.
    fn overrun(&mut self) -> Outcome<u64>;
}

impl<'a> RxFrame<'a> {
    /// Makes a frame that arrived whole, without a tag and with its checksum.
    pub fn whole(bytes: &'a [u8], at_ns: u64) -> Self {
        RxFrame {
            bytes,
            wire_length: bytes.len(),
            at_ns,
            checksum_pending: false,
            vlan_tagged: false,
        }
    }
}
