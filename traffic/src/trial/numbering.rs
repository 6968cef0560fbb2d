// SPDX-License-Identifier: Apache-2.0
//! The sequence numbers that continue from trial to trial.

use crate::esp::numbers::Numbers;
use crate::send::report::SendReport;

/// The next sequence numbers of test frames and of ESP packets.
#[derive(Debug, Default, Clone)]
pub struct Numbering {
    /// Sequence number of the next trial's first frames. A late frame of an earlier trial has a lower one, and is
    /// foreign.
    pub next_sequence: u64,
    pub esp: Numbers,
}

impl Numbering {
    /// Advances the sequence number of test frames beyond those that a trial used.
    pub fn pass(&mut self, reports: &[SendReport]) {
        self.next_sequence += reports.iter().map(|report| report.sent).max().unwrap_or(0) + 1;
    }
}
