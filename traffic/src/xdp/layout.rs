// SPDX-License-Identifier: Apache-2.0
//! The layout of the maps of bpf/*.bpf.c. Both sides must agree on every byte; the comments in bpf/ describe the
//! fields.

use crate::count::arrivals::LISTED;
use crate::count::histogram::SLOTS;
use crate::frame::octets::fold;
use crate::frame::test_header::RunKey;

pub const STREAMS: usize = 8;
pub const LONGEST: usize = 3456;
pub const ORDER: usize = 4096;
pub const VARIANTS: usize = 64;
pub const STALLS: usize = 1000;
pub const STEPS: usize = 16;
pub const SLICES: usize = 20;
pub const HDR_SLOTS: usize = SLOTS;
pub const GAPS: usize = LISTED;
pub const BINS: usize = 16_384;
/// Smallest width of the bins. They are wider if necessary, so that they reach the latest end of sending.
pub const BIN_NS: u64 = 100_000;

/// A type that is plain bytes in a map: every bit pattern is one of its values.
///
/// # Safety
/// Implement it for integers, and for `repr(C)` structures of integers without padding.
pub unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($name:ty),*) => { $(
        // SAFETY: integers, or repr(C) structures of integers whose padding is spelled out.
        unsafe impl Plain for $name {}
    )* };
}

/// The run's key.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Key {
    pub secret: u64,
    pub magic: u16,
    pub unused: [u16; 3],
}

impl From<RunKey> for Key {
    fn from(key: RunKey) -> Self {
        Key {
            secret: key.secret(),
            magic: key.magic,
            unused: [0; 3],
        }
    }
}

/// The map `control` of send.bpf.c.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SendControl {
    pub key: Key,
    pub start_ns: u64,
    pub slice_ns: u64,
    pub mark_ns: u64,
    pub streams: u32,
    pub stop: u32,
    pub finished: u32,
    pub batch: u32,
    pub position: u32,
    pub pending: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct SendVariant {
    pub l3: u16,
    pub l4: u16,
    pub payload: u16,
    pub src_port: u16,
    pub tcp: u8,
    pub unused: [u8; 7],
    pub ip_sum: u64,
    pub l4_sum: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct SendStretch {
    pub first: u64,
    pub due_ns: u64,
    pub due_frac: u64,
    pub interval_ns: u64,
    pub interval_frac: u64,
    pub catch_up_ns: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct SendStream {
    pub planned: u64,
    pub until_ns: u64,
    pub leeway_ns: u64,
    pub tag_ns: u64,
    pub first_sequence: u64,
    pub step: u64,
    pub phase: u64,
    pub address_base: u32,
    pub template_base: u32,
    pub flows: u32,
    pub ports: u32,
    pub order_length: u32,
    pub id: u16,
    pub ipv6: u8,
    pub dont_fragment: u8,
    pub raw: u32,
    pub paced: u32,
    pub counter: u64,
    pub counter_at: u32,
    pub unused: u32,
    pub stretches: [SendStretch; STEPS],
    pub variants: [SendVariant; VARIANTS],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Stall {
    pub at_ns: u64,
    pub paused_ns: u64,
    pub until_ns: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Progress {
    pub sent: u64,
    pub due_ns: u64,
    pub due_frac: u64,
    pub gate_ns: u64,
    pub first_tx_ns: u64,
    pub last_tx_ns: u64,
    pub late_frames: u64,
    pub stalls_more: u64,
    pub stalls_more_ns: u64,
    pub late_ns: u64,
    pub stall_at_ns: u64,
    pub stall_paused_ns: u64,
    pub stall_before_ns: u64,
    pub stall_after_ns: u64,
    pub put_off_ns: u64,
    pub stalls: u32,
    pub marks: u32,
    pub mark_ns: u64,
    pub marked: u64,
    pub tagged: u64,
    pub tagged_ns: u64,
    pub stretch: u32,
    pub unused: u32,
    pub stall: [Stall; STALLS],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Address {
    pub bytes: [u8; 32],
    pub sum: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Mark {
    pub frame: u64,
    pub at_ns: u64,
}

/// The map `control` of receive.bpf.c.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ReceiveControl {
    pub key: Key,
    pub total: u64,
    pub stale: u64,
    pub odd: u64,
    pub unjudged: u64,
    pub streams: u32,
    pub unused: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ExpectedSize {
    pub length: u32,
    pub unused: u32,
    pub pattern_sum: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Expected {
    pub first_sequence: u64,
    pub sequences: u64,
    pub start_ns: u64,
    pub slice_ns: u64,
    pub tail_ns: u64,
    pub bin_ns: u64,
    pub tag_ns: u64,
    pub bitmap_at: u64,
    pub lead: u32,
    pub unused_too: u32,
    pub lengths: u32,
    pub id: u16,
    pub ipv6: u8,
    pub unused: u8,
    pub sizes: [ExpectedSize; VARIANTS],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct SliceSum {
    pub frames: u64,
    pub min_ns: u64,
    pub total_ns: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Count {
    pub received: u64,
    pub duplicated: u64,
    pub reordered: u64,
    /// The highest number that arrived, plus one.
    pub highest: u64,
    pub last_rx_ns: u64,
    /// Number of arrivals after the last bin of the tail.
    pub beyond: u64,
    /// The lowest number, plus one, of the frames that were sent at the time of the tag or later and arrived.
    pub tagged: u64,
    pub tagged_latency_ns: u64,
    pub early: u64,
    pub slices: [SliceSum; SLICES],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Gap {
    pub from_ns: u64,
    pub to_ns: u64,
}

/// The arrivals of a whole stream.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Arrivals {
    pub over_ns: u64,
    pub first_ns: u64,
    pub last_ns: u64,
    pub longest: Gap,
    pub listed: u64,
    pub more: u64,
    pub gap: [Gap; GAPS],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Frame {
    pub length: u32,
    pub checksum_at: u32,
    pub bytes: [u8; LONGEST],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Pattern {
    pub bytes: [u8; LONGEST + 8],
}

plain!(
    u8,
    u64,
    SendControl,
    SendStream,
    Progress,
    Address,
    Mark,
    ReceiveControl,
    Expected,
    Count,
    Arrivals,
    Frame,
    Pattern
);

/// Converts a sum of big-endian words (frame/octets.rs) to the machine's byte order, in which the XDP programs add
/// words (RFC 1071, 2 B).
pub fn machine_sum(total: u64) -> u64 {
    u64::from(fold(total).to_be())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::octets::sum;

    /// The words of a frame, added in the machine's byte order, give the same checksum as in network byte order.
    #[test]
    fn sums_agree_in_either_order() {
        let bytes: Vec<u8> = (0..60).map(|i| (i * 37 + 11) as u8).collect();
        let machine: u64 = bytes
            .chunks(2)
            .map(|word| u64::from(u16::from_ne_bytes([word[0], word[1]])))
            .sum();
        let parts = machine_sum(sum(&bytes[..20])) + machine_sum(sum(&bytes[20..]));
        assert_eq!(fold(machine), fold(parts));
        assert_eq!(fold(parts), fold(sum(&bytes)).to_be());
    }
}
