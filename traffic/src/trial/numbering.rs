// SPDX-License-Identifier: Apache-2.0
//! The sequence numbers that continue from trial to trial.

use crate::esp::numbers::Numbers;
use crate::protocol::Association;
use crate::send::report::SendReport;

/// The next sequence numbers of test frames and of ESP packets.
#[derive(Debug, Default, Clone)]
pub struct Numbering {
    /// Sequence number of the next trial's first frames. A late frame of an earlier trial has a lower one, and is
    /// foreign.
    pub next_sequence: u64,
    pub esp: Numbers,
}

/// The highest numbers that a trial can use.
#[derive(Debug)]
pub struct Most {
    /// Largest number of frames of a stream.
    pub frames: u64,
    /// The SAs that seal, and the highest sequence number of each.
    pub esp: Vec<(Association, u64)>,
}

impl Numbering {
    /// Advances the sequence number of test frames beyond those that a trial used.
    pub fn pass(&mut self, reports: &[SendReport]) {
        self.next_sequence += reports.iter().map(|report| report.sent).max().unwrap_or(0) + 1;
    }

    /// Advances all numbers beyond those that a trial can have used that failed after frames left, and has no reports.
    /// Else its late frames would count in the next trial, and ESP would use numbers twice, which peers refuse, and AES-GCM
    /// must never do.
    pub fn pass_most(&mut self, most: &Most) {
        self.next_sequence += most.frames + 1;
        for (sa, last) in &most.esp {
            self.esp.sealed(sa, *last);
        }
    }
}
