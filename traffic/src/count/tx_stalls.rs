// SPDX-License-Identifier: Apache-2.0
//! The stalls of a sender: pauses in which it did not run, each until the sender has caught up with its schedule.
//!
//! bpf/send.bpf.c (`note_lateness`) does the same for live frames.

use crate::protocol::TxStall;

/// A frame whose lateness exceeds this counts as late.
pub const LATE_NS: u64 = 100_000;
/// Growth of the lateness, from one frame to the next, that shows a pause.
pub const STALL_NS: u64 = 500_000;
/// After a pause, a sender is too slow to catch up when its lateness has grown by the pause divided by this.
const HOPELESS: u64 = 8;
/// Largest number of stalls of one sender that are listed. Even if all are of the shortest length, so many make a trial
/// of 60 s invalid (harness/espbench/measure/validity/faults.py).
const LISTED: usize = 1000;

/// The stalls of one sender, computed from the lateness of its frames. A sender that is merely too slow falls behind a
/// little with each frame. It has no stall, however late its frames are.
#[derive(Debug, Default)]
pub struct StallList {
    pub listed: Vec<TxStall>,
    pub more: u64,
    /// Sum of the lengths of the stalls that are not listed, each from its pause until the sender had caught up.
    pub more_ns: u64,
    late_ns: u64,
    left_ns: u64,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    at_ns: u64,
    paused_ns: u64,
    /// Lateness before the pause; `after_ns` is the lateness after it.
    before_ns: u64,
    after_ns: u64,
}

impl Open {
    /// Tells that the sender is too slow: it falls further behind, and will never catch up. After a long pause, that
    /// takes more than a few pauses too short for the list: a sender that was stopped for 100 ms often has some.
    fn is_hopeless(&self, late_ns: u64) -> bool {
        late_ns > self.after_ns + STALL_NS.max(self.paused_ns / HOPELESS)
    }
}

impl StallList {
    /// Notes a frame that left at `now_ns`, `late_ns` after it was due. Returns the length of the pause before it, ns;
    /// 0 if there was none.
    pub fn note(&mut self, now_ns: u64, late_ns: u64) -> u64 {
        let before_ns = std::mem::replace(&mut self.late_ns, late_ns);
        let pause_ns = late_ns.saturating_sub(before_ns);
        self.left_ns = now_ns;
        match &mut self.open {
            Some(open) if pause_ns > STALL_NS => {
                open.paused_ns += pause_ns;
                open.after_ns = late_ns;
            }
            Some(open) if late_ns < open.before_ns + LATE_NS || open.is_hopeless(late_ns) => {
                self.close();
            }
            Some(_) => {}
            None if pause_ns > STALL_NS => {
                self.open = Some(Open {
                    at_ns: now_ns - pause_ns,
                    paused_ns: pause_ns,
                    before_ns,
                    after_ns: late_ns,
                });
            }
            None => {}
        }
        if pause_ns > STALL_NS { pause_ns } else { 0 }
    }

    /// Notes that the frames after the last one are due `by_ns` later than scheduled, which reduces their lateness.
    pub fn put_off(&mut self, by_ns: u64) {
        self.late_ns = self.late_ns.saturating_sub(by_ns);
        if let Some(open) = &mut self.open {
            open.after_ns = open.after_ns.saturating_sub(by_ns);
        }
    }

    /// Ends the current stall, if there is one, and lists it.
    pub fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        if self.listed.len() < LISTED {
            self.listed.push(TxStall {
                at_ns: open.at_ns,
                ms: open.paused_ns as f64 / 1e6,
                until_ns: self.left_ns,
            });
        } else {
            self.more += 1;
            self.more_ns += self.left_ns.saturating_sub(open.at_ns);
        }
    }
}

/// Merges the stalls of several senders of one stream into one list, in the order of time. Stalls that overlap become
/// one.
pub fn merged(mut stalls: Vec<TxStall>) -> Vec<TxStall> {
    stalls.sort_by_key(|stall| (stall.at_ns, stall.until_ns));
    let mut found: Vec<TxStall> = Vec::new();
    for stall in stalls {
        match found.last_mut() {
            Some(last) if stall.at_ns <= last.until_ns => {
                last.until_ns = last.until_ns.max(stall.until_ns);
                let whole_ms = (last.until_ns - last.at_ns) as f64 / 1e6;
                last.ms = (last.ms + stall.ms).min(whole_ms);
            }
            _ => found.push(stall),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Returns the stalls (begin, pause, end, µs) of frames that are due every millisecond, with this lateness, ns.
    fn listed(late: impl IntoIterator<Item = u64>) -> Vec<(u64, u64, u64)> {
        let mut list = StallList::default();
        for (number, late_ns) in late.into_iter().enumerate() {
            list.note(number as u64 * MS + late_ns, late_ns);
        }
        list.close();
        let us = |stall: &TxStall| {
            (
                stall.at_ns / 1000,
                (stall.ms * 1e3).round() as u64,
                stall.until_ns / 1000,
            )
        };
        list.listed.iter().map(us).collect()
    }

    /// A stall begins when the sender stopped and lasts until its frames leave on time again.
    #[test]
    fn a_stall_lasts_until_it_is_made_good() {
        let late = [
            10_000, 3_010_000, 2_900_000, 1_500_000, 600_000, 120_000, 90_000, 20_000,
        ];
        assert_eq!(listed(late), [(1_010, 3_000, 6_090)]);
        let begun_late = [3_000_000, 2_000_000, 0];
        assert_eq!(listed(begun_late), [(0, 3_000, 2_000)]);
    }

    /// A second pause before the sender has caught up belongs to the same stall; a later one is another stall.
    #[test]
    fn pauses_that_overlap_are_one_stall() {
        let late = [0, 2 * MS, MS, 3 * MS, MS, 0, 0, 900_000, 0];
        assert_eq!(listed(late), [(1_000, 4_000, 5_000), (7_000, 900, 8_000)]);
    }

    /// Overload makes frames later and later and is no stall. A stall during overload ends soon, because the sender
    /// falls further behind.
    #[test]
    fn overload_is_no_stall() {
        assert_eq!(listed((0..1_000).map(|n| n * 100_000)), []);
        let paused = |n: u64| n * 100_000 + if n >= 500 { 5 * MS } else { 0 };
        assert_eq!(listed((0..1_000).map(paused)), [(549_900, 5_100, 562_700)]);
    }

    /// Short pauses after a long one belong to it: what follows is sent faster than the rate, until it is made good.
    #[test]
    fn a_long_stall_survives_short_pauses() {
        let short = [0, 400_000, 800_000, 1_200_000];
        let made_good = (0..1_020).map(|n| 1_200_000 - n * 100_000);
        let after = |pause_ns: i64| {
            let late = short.into_iter().chain(made_good.clone());
            listed(std::iter::once(0).chain(late.map(|late_ns| (pause_ns + late_ns).max(0) as u64)))
        };
        assert_eq!(after(100_000_000), [(1_000, 100_000, 1_017_000)]);
        // After a short pause, the same is a sender that is too slow.
        assert_eq!(after(2_000_000), [(1_000, 2_000, 5_800)]);
    }

    /// Stalls that are not listed are counted, with the time that they lasted: 3.1 ms of every 10 ms.
    #[test]
    fn the_time_of_stalls_that_are_not_listed_is_known() {
        let mut list = StallList::default();
        for number in 0..LISTED as u64 + 50 {
            let due = number * 10 * MS;
            list.note(due, 0);
            list.note(due + 3 * MS, 2 * MS);
            list.note(due + 4_100_000, 0);
        }
        list.close();
        assert_eq!(list.listed.len(), LISTED);
        assert_eq!((list.more, list.more_ns), (50, 50 * 3_100_000));
    }

    /// Stalls of several senders stay apart if they do not overlap; else they are one, whose pause fits its length.
    #[test]
    fn stalls_of_several_senders_are_merged() {
        let stall = |at_ns, ms, until_ns| TxStall { at_ns, ms, until_ns };
        let both = vec![
            stall(20 * MS, 5.0, 30 * MS),
            stall(0, 1.0, 2 * MS),
            stall(20 * MS, 7.0, 29 * MS),
        ];
        assert_eq!(
            merged(both),
            [stall(0, 1.0, 2 * MS), stall(20 * MS, 10.0, 30 * MS)]
        );
    }
}
