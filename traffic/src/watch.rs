// SPDX-License-Identifier: Apache-2.0
//! A trial as seen from outside while its threads work: progress, and when nothing more will come.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::clock::{StepWatch, monotonic_ns};
use crate::protocol::{self, Event};
use crate::sender::Live;

/// A receive block may be handed over so much later than its last frame; nothing ends sooner.
const SETTLE_NS: u64 = 30_000_000;
/// After residue_s, so long a silence means that nothing more comes.
const SILENCE_S: f64 = 0.1;
pub const PROGRESS_NS: u64 = 500_000_000;

pub struct Watch<'a> {
    pub trial: &'a protocol::Trial,
    pub lives: &'a [Arc<Live>],
    pub steps: &'a mut StepWatch,
    pub start_ns: u64,
    pub next_progress_ns: u64,
    pub emit: &'a mut dyn FnMut(&Event),
}

impl Watch<'_> {
    fn sum(&self, what: impl Fn(&Live) -> u64) -> u64 {
        self.lives.iter().map(|live| what(live)).sum()
    }

    /// A short sleep, with progress when its time has come.
    pub fn pause(&mut self) {
        std::thread::sleep(Duration::from_millis(10));
        let now = monotonic_ns();
        if now >= self.next_progress_ns {
            self.next_progress_ns += PROGRESS_NS;
            self.steps.sample();
            let event = Event::Progress {
                id: self.trial.id.clone(),
                elapsed_s: now.saturating_sub(self.start_ns) as f64 / 1e9,
                tx_frames: self.sum(|live| live.sent.load(Ordering::Relaxed)),
                rx_frames: self.sum(|live| live.arrived.load(Ordering::Relaxed)),
            };
            (self.emit)(&event);
        }
    }

    /// Whether the wait for frames still on their way may end.
    pub fn residue_over(&self, last_tx_ns: u64) -> bool {
        residue_over(self.trial, self.lives, monotonic_ns(), last_tx_ns)
    }
}

/// Whether the wait for frames still on their way may end at `now_ns`.
pub fn residue_over(trial: &protocol::Trial, lives: &[Arc<Live>], now_ns: u64, last_tx_ns: u64) -> bool {
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
