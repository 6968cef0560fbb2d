// SPDX-License-Identifier: Apache-2.0
//! The counters by which others follow a stream's sender and receiver while a trial runs.

use std::sync::atomic::AtomicU64;

/// The counters of one stream. Its receiver needs `last_tx_ns` to tell which frames came after the last was sent.
#[derive(Debug, Default)]
pub struct Live {
    pub sent: AtomicU64,
    /// Time at which the last send returned; 0 while sending.
    pub last_tx_ns: AtomicU64,
    pub arrived: AtomicU64,
    pub accounted: AtomicU64,
    pub last_rx_ns: AtomicU64,
}

/// Returns when the frame of a tag is to leave, at the earliest: without a tag never.
pub fn tag_ns(start_ns: u64, tag_at_s: Option<f64>) -> u64 {
    tag_at_s.map_or(u64::MAX, |at_s| start_ns + (at_s * 1e9) as u64)
}
