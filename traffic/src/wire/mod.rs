// SPDX-License-Identifier: Apache-2.0
//! Paths to the wire by sockets: the traits of a sender and a receiver of frames, for AF_PACKET and AF_XDP.
//!
//! This folder imports `xdp` (AF_XDP needs a program) and `host`.

pub mod af_packet;
pub mod af_xdp;
pub mod interface;
pub mod shared_rings;
pub mod socket;

use std::time::Duration;

use crate::failure::Outcome;

/// Largest number of frames that are handed over together, in one system call.
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

/// The result of handing over frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Number of frames that need not be handed over again, from the first on.
    pub taken: usize,
    /// Number of frames of `taken` that the next device's full ring dropped at once.
    pub refused: usize,
}

/// A sender of frames to one port.
pub trait FrameSender: Send {
    /// Hands over the frames `range` of the batch without blocking. Fewer are taken if there is no room for all.
    fn send(&mut self, batch: &Batch, range: std::ops::Range<usize>) -> Outcome<Sent>;

    /// Waits until all frames that were taken have left. Fails if they do not leave.
    fn finish(&mut self) -> Outcome<()> {
        Ok(())
    }
}

/// A frame as the port received it.
pub struct RxFrame<'a> {
    pub bytes: &'a [u8],
    /// Length on the wire, which is more than that of `bytes` if the port cut the frame.
    pub wire_length: usize,
    /// Time of arrival, of CLOCK_MONOTONIC or of virtual time.
    pub at_ns: u64,
    /// True if the sender left the checksum to an offload, and no device has computed it.
    pub checksum_pending: bool,
    pub vlan_tagged: bool,
}

/// A receiver of frames from one port.
pub trait FrameReceiver: Send {
    /// Discards waiting frames, and resets the count of `overrun`.
    fn begin(&mut self) -> Outcome<()>;
    /// Waits at most `timeout` for frames, and hands all waiting frames to `each`.
    fn receive(&mut self, timeout: Duration, each: &mut dyn FnMut(&RxFrame)) -> Outcome<()>;
    /// Returns the number of frames since `begin` for which the port had no room.
    fn overrun(&mut self) -> Outcome<u64>;
}

impl<'a> RxFrame<'a> {
    /// Makes a frame that was not cut and has its checksum and no VLAN tag.
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
