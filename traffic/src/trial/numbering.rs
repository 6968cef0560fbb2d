// SPDX-License-Identifier: Apache-2.0
//! The numbers that go on from trial to trial.

use crate::esp::numbers::Numbers;
use crate::send::report::SendReport;

/// The next numbers of test frames and of ESP packets.
#[derive(Debug, Default, Clone)]
pub struct Numbering {
    /// Sequence number of the next trial's first frames: a late frame of an earlier trial is foreign.
    pub next_sequence: u64,
    pub esp: Numbers,
}

impl Numbering {
    /// Leaves the sequence numbers behind that a trial used.
    pub fn pass(&mut self, reports: &[SendReport]) {
        self.next_sequence += reports.iter().map(|report| report.sent).max().unwrap_or(0) + 1;
    }
}
