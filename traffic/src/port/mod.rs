// SPDX-License-Identifier: Apache-2.0
//! Open ports: the interfaces that a trial uses, each with its way to send and its way to receive.
//!
//! This folder imports `receive` (a port can receive in the kernel) and `wire`.

pub mod address_resolution;
pub mod open_port;

use crate::host::netlink::Link;
use crate::host::netns::Netns;
use crate::protocol::{OpenPort, OpenedPort};
use crate::receive::kernel_receiver::KernelReceiver;
use crate::wire::{FrameReceiver, FrameSender};

/// The way in which a port sends.
pub enum Tx {
    Packets(Box<dyn FrameSender>),
    /// A program in the kernel makes and paces live frames; it does not see what becomes of them.
    Live(Link),
}

/// The way in which a port receives.
pub enum Rx {
    Packets(Box<dyn FrameReceiver>),
    /// A program in the kernel counts intact frames.
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
}
