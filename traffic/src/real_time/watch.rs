// SPDX-License-Identifier: Apache-2.0
//! Watches a trial while its threads work: reports progress to the caller, and asks the caller whether to stop.

use std::sync::Arc;
use std::time::Duration;

use crate::count::live::Live;
use crate::host::clock::{StepWatch, monotonic_ns};
use crate::protocol::Trial;
use crate::trial::caller::Caller;
use crate::trial::progress::{PROGRESS_NS, progress, residue_over};

/// The state of a trial that is watched.
pub struct Watch<'a, 'b> {
    pub trial: &'a Trial,
    lives: &'a [Arc<Live>],
    caller: &'a mut Caller<'b>,
    pub steps: StepWatch,
    pub start_ns: u64,
    next_progress_ns: u64,
    sending: bool,
    pub stopped_early: bool,
}

impl<'a, 'b> Watch<'a, 'b> {
    /// Begins to watch a trial that starts at `start_ns`.
    pub fn new(
        trial: &'a Trial,
        lives: &'a [Arc<Live>],
        steps: StepWatch,
        start_ns: u64,
        caller: &'a mut Caller<'b>,
    ) -> Self {
        Watch {
            trial,
            lives,
            caller,
            steps,
            start_ns,
            next_progress_ns: start_ns + PROGRESS_NS,
            sending: true,
            stopped_early: false,
        }
    }

    /// Sleeps for 10 ms, and reports progress each PROGRESS_NS.
    pub fn pause(&mut self) {
        std::thread::sleep(Duration::from_millis(10));
        if monotonic_ns() >= self.next_progress_ns {
            self.next_progress_ns += PROGRESS_NS;
            self.steps.sample();
            self.tell();
        }
    }

    /// Reports progress. The caller also uses the events at the start and at the end of sending to read the host's
    /// state.
    pub fn tell(&mut self) {
        let elapsed_ns = monotonic_ns().saturating_sub(self.start_ns);
        (self.caller.emit)(&progress(self.trial, self.lives, elapsed_ns, self.sending));
    }

    /// Notes that sending is over, and reports it.
    pub fn sending_is_over(&mut self) {
        self.sending = false;
        self.tell();
    }

    /// Asks the caller whether the trial is to end.
    pub fn asked_to_stop(&mut self) -> bool {
        let asked = (self.caller.asked_to_stop)();
        self.stopped_early |= asked;
        asked
    }

    /// Returns whether the wait for frames that are still in the DUT may end.
    pub fn residue_over(&self, last_tx_ns: u64) -> bool {
        residue_over(self.trial, self.lives, monotonic_ns(), last_tx_ns)
    }
}
