// SPDX-License-Identifier: Apache-2.0
//! The report of a stream's sender: the number of frames that left, and their times.

use hdrhistogram::Histogram;

use crate::count::histogram::histogram;
use crate::failure::Outcome;
use crate::protocol::TxStall;
use crate::send::pace::Schedule;

/// Time between two marks, pairs of (frame, time of departure).
pub const MARK_NS: u64 = 500_000;

/// Returns the time between two marks of a trial that lasts at most `longest_ns`: MARK_NS, or more, so that there are at
/// most `marks` (twice as many if each follows a pause).
pub fn mark_interval_ns(longest_ns: u64, marks: usize) -> u64 {
    MARK_NS.max(longest_ns / marks as u64 + 1)
}

/// The report of one stream's sender.
#[derive(Debug)]
pub struct SendReport {
    pub sent: u64,
    pub planned: Option<u64>,
    pub refused: u64,
    /// Number of frames of `sent` for which the port's driver had no room. They never left, and are not lost frames.
    pub vanished: u64,
    pub retries: u64,
    pub first_tx_ns: u64,
    pub last_tx_ns: u64,
    /// Time at which the last frame left; last_tx_ns may be the end of its system call.
    pub last_left_ns: u64,
    /// Time at which sending ended with frames unsent. None if all frames were sent, or if the trial was stopped.
    pub cut_ns: Option<u64>,
    /// Index and time of departure of the first frame that left at the time of the tag or later.
    pub tagged: Option<(u64, u64)>,
    pub interval_ns: f64,
    pub schedule: Schedule,
    pub lateness: Histogram<u64>,
    pub late_frames: u64,
    pub stalls: Vec<TxStall>,
    pub stalls_more: u64,
    pub stalls_more_ns: u64,
    /// Marks (frame, time of departure) in ascending order, about one in each half millisecond; in long trials they
    /// are farther apart.
    pub marks: Vec<(u64, u64)>,
    /// The highest sequence number of each SA. Empty if the stream leaves in clear or with a deliberate fault.
    pub last_esp_numbers: Vec<u64>,
    /// True if the stream was sealed before the trial. None if it leaves in clear.
    pub sealed_before: Option<bool>,
}

impl SendReport {
    /// Makes a report of no frames.
    pub fn new(schedule: &Schedule) -> Outcome<Self> {
        Ok(SendReport {
            sent: 0,
            planned: schedule.planned(),
            refused: 0,
            vanished: 0,
            retries: 0,
            first_tx_ns: 0,
            last_tx_ns: 0,
            last_left_ns: 0,
            cut_ns: None,
            tagged: None,
            interval_ns: schedule.last_interval_ns(),
            schedule: schedule.clone(),
            lateness: histogram()?,
            late_frames: 0,
            stalls: Vec::new(),
            stalls_more: 0,
            stalls_more_ns: 0,
            marks: Vec::new(),
            last_esp_numbers: Vec::new(),
            sealed_before: None,
        })
    }

    /// Returns the time at which frame `index` was sent: its due time plus a lateness that is interpolated between the
    /// marks around it.
    pub fn sent_at(&self, index: u64) -> u64 {
        let after = self.marks.partition_point(|mark| mark.0 <= index);
        let Some(&(from, from_ns)) = self.marks.get(after.saturating_sub(1)) else {
            return self.first_tx_ns;
        };
        let last = (self.sent.saturating_sub(1), self.last_left_ns);
        let (to, to_ns) = self.marks.get(after).copied().unwrap_or(last);
        if to <= from || index <= from {
            return from_ns;
        }
        let due = |frame| {
            i128::from(if self.schedule.is_paced() {
                self.schedule.due_ns(frame)
            } else {
                0
            })
        };
        let (late_from, late_to) = (i128::from(from_ns) - due(from), i128::from(to_ns) - due(to));
        let late = late_from + (late_to - late_from) * i128::from(index - from) / i128::from(to - from);
        (due(index) + late) as u64
    }

    /// Notes the time at which frame `index` left. If the frame before it left at least `pause_ns` earlier, notes that
    /// one, too.
    pub fn mark(&mut self, index: u64, at_ns: u64, pause_ns: u64) {
        let marked = self.marks.last().map(|&(marked, _)| marked);
        if marked.is_some_and(|marked| index > marked + 1) && at_ns - self.last_left_ns >= pause_ns {
            self.marks.push((index - 1, self.last_left_ns));
        }
        self.marks.push((index, at_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks are half a millisecond apart, and in a long trial as far as their number asks.
    #[test]
    fn marks_of_a_long_trial_are_farther_apart() {
        let hour_ns = 3_600_000_000_000;
        assert_eq!(mark_interval_ns(1_000_000_000, 1 << 15), MARK_NS);
        for marks in [1 << 15, 1 << 20] {
            let interval_ns = mark_interval_ns(24 * hour_ns, marks);
            assert!(interval_ns > MARK_NS && 24 * hour_ns / interval_ns < marks as u64);
        }
    }
}
