// SPDX-License-Identifier: Apache-2.0
//! The counters by which other threads follow a stream's sender and receiver while a trial runs.

use std::sync::atomic::AtomicU64;

/// The counters of one stream. Its receiver needs `last_tx_ns` to count the frames that arrive after sending ended.
#[derive(Debug, Default)]
pub struct Live {
    pub sent: AtomicU64,
    /// Time at which the last send returned; 0 while sending.
    pub last_tx_ns: AtomicU64,
    pub arrived: AtomicU64,
    pub accounted: AtomicU64,
    pub last_rx_ns: AtomicU64,
}

/// Returns the earliest time at which the tagged frame may leave; u64::MAX if no frame is tagged.
pub fn tag_ns(start_ns: u64, tag_at_s: Option<f64>) -> u64 {
    tag_at_s.map_or(u64::MAX, |at_s| start_ns + (at_s * 1e9) as u64)
}
