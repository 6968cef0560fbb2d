// SPDX-License-Identifier: Apache-2.0
//! A port: where frames go out and come in. The one interface that other ways to the wire implement.

pub mod af_packet;
pub mod af_xdp;
pub mod interface;
pub mod netns;
pub mod open;
pub mod socket;
pub mod virtual_time;

use std::time::Duration;

use crate::failure::Outcome;
use crate::netlink::Link;
use crate::protocol::{OpenPort, OpenedPort};
use crate::xdp::receiver::KernelReceiver;

/// Frames ready to be sent, in buffers that are reused.
pub struct Batch {
    buffers: Vec<Vec<u8>>,
    pub lengths: Vec<usize>,
}

impl Batch {
    /// `frames` buffers, each beginning as a copy of `template`.
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

/// What became of the frames handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Frames dealt with, from the first on.
    pub taken: usize,
    /// Of these, frames that the next device's full ring dropped at once.
    pub refused: usize,
}

pub trait FrameSender: Send {
    /// Hands over frames `range` of the batch without blocking; fewer are taken when there is no room.
    fn send(&mut self, batch: &Batch, range: std::ops::Range<usize>) -> Outcome<Sent>;

    /// Returns when all that was taken has left; a failure where it does not.
    fn finish(&mut self) -> Outcome<()> {
        Ok(())
    }
}

/// A frame as the port received it.
pub struct RxFrame<'a> {
    pub bytes: &'a [u8],
    /// Its length before the port cut it.
    pub wire_length: usize,
    /// CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// The sender left the checksum to an offload that has not happened.
    pub checksum_pending: bool,
    pub vlan_tagged: bool,
}

pub trait FrameReceiver: Send {
    /// Forgets what is waiting and starts to count afresh.
    fn begin(&mut self) -> Outcome<()>;
    /// Waits at most `timeout` and hands every frame that is there to `each`.
    fn receive(&mut self, timeout: Duration, each: &mut dyn FnMut(&RxFrame)) -> Outcome<()>;
    /// Frames the port had no room for since `begin`.
    fn overrun(&mut self) -> Outcome<u64>;
}

/// How a port sends.
pub enum Tx {
    Packets(Box<dyn FrameSender>),
    /// Live frames, made and paced by a program in the kernel, which does not see what becomes of them.
    Live(Link),
}

/// How a port receives.
pub enum Rx {
    Packets(Box<dyn FrameReceiver>),
    Kernel(Box<KernelReceiver>),
}

/// An open port.
pub struct Port {
    pub asked: OpenPort,
    pub told: OpenedPort,
    pub mac: [u8; 6],
    pub netns: netns::Netns,
    pub index: i32,
    pub tx: Tx,
    pub rx: Rx,
}
