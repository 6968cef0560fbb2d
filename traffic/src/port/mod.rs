// SPDX-License-Identifier: Apache-2.0
//! Open ports: the interfaces that a trial uses, each with its path for sending and its path for receiving.
//!
//! This folder imports `receive` (a port can receive in the kernel) and `wire`.

pub mod address_resolution;
pub mod open_port;

use crate::host::netlink::Link;
use crate::host::netns::Netns;
use crate::protocol::{OpenPort, OpenedPort};
use crate::receive::kernel_receiver::KernelReceiver;
use crate::wire::{FrameReceiver, FrameSender};

/// The path on which a port sends.
pub enum Tx {
    /// User space hands frames to a socket (AF_PACKET, AF_XDP).
    Packets(Box<dyn FrameSender>),
    /// An XDP program makes and paces live frames. It does not see whether they leave; the interface's counters do.
    Live(Link),
}

/// The path on which a port receives.
pub enum Rx {
    /// User space reads frames from a socket (AF_PACKET, AF_XDP).
    Packets(Box<dyn FrameReceiver>),
    /// An XDP program counts intact frames.
    Kernel(Box<KernelReceiver>),
}

/// An open port.
pub struct Port {
    pub asked: OpenPort,
    pub told: OpenedPort,
    pub mac: [u8; 6],
    pub netns: Netns,
    pub index: i32,
    pub tx: Tx,
    pub rx: Rx,
    /// Reads the counters of the interface; None if the kernel does not show them.
    pub counters: Option<Link>,
    /// The driver counts live frames as sent, or does not; None until a trial has shown it.
    pub counts_live_frames: Option<bool>,
    /// Number of queues by which frames come in.
    pub rx_queues: u32,
}
