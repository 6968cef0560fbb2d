// SPDX-License-Identifier: Apache-2.0
//! The progress of a trial: how far it is, and when the wait for the residue is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::count::live::Live;
use crate::protocol::{Event, Trial};

/// Time between two events of progress.
pub const PROGRESS_NS: u64 = 500_000_000;
/// Shortest wait: the kernel may hand over a block of the receive ring this long after its last frame arrived.
const SETTLE_NS: u64 = 30_000_000;
/// Time without arrivals, s, after which no more frames are expected when residue_s is over.
const SILENCE_S: f64 = 0.1;

/// Makes an event of progress.
pub fn progress(trial: &Trial, lives: &[Arc<Live>], elapsed_ns: u64, sending: bool) -> Event {
    let sum = |of: fn(&Live) -> &AtomicU64| -> u64 {
        lives.iter().map(|live| of(live).load(Ordering::Relaxed)).sum()
    };
    Event::Progress {
        id: trial.id.clone(),
        elapsed_s: elapsed_ns as f64 / 1e9,
        tx_frames: sum(|live| &live.sent),
        rx_frames: sum(|live| &live.arrived),
        sending,
    }
}

/// Returns whether the wait for frames that are still in the DUT may end at `now_ns`.
pub fn residue_over(trial: &Trial, lives: &[Arc<Live>], now_ns: u64, last_tx_ns: u64) -> bool {
    let waited_ns = now_ns.saturating_sub(last_tx_ns);
    let last_rx_ns = lives
        .iter()
        .map(|live| live.last_rx_ns.load(Ordering::Relaxed))
        .max()
        .unwrap_or(0);
    let silent_ns = now_ns.saturating_sub(last_rx_ns.max(last_tx_ns));
    let longer = |ns: u64, seconds: f64| ns as f64 >= seconds * 1e9 && ns >= SETTLE_NS;
    let complete = lives
        .iter()
        .all(|live| live.accounted.load(Ordering::Acquire) >= live.sent.load(Ordering::Relaxed));
    if complete && trial.quiet_s.is_some_and(|quiet_s| longer(silent_ns, quiet_s)) {
        return true;
    }
    longer(waited_ns, trial.residue_s)
        && (longer(silent_ns, SILENCE_S) || longer(waited_ns, trial.residue_max_s))
}
