// SPDX-License-Identifier: Apache-2.0
//! The departures of live frames, from the port's own counters: the XDP program that makes the frames does not see
//! whether they leave.

use std::time::Duration;

use crate::host::clock::monotonic_ns;
use crate::host::netlink::LinkState;
use crate::port::{Port, Tx};
use crate::send::report::SendReport;

/// Time after which every driver has updated its counters.
const COUNTERS_LAG_NS: u64 = 2_500_000_000;
const PAUSE: Duration = Duration::from_millis(20);

/// The counters of a port before a trial.
pub struct Departures(LinkState);

impl Departures {
    /// Reads the counters; returns None for a port that sends packets, or if they cannot be read.
    pub fn begin(port: &Port) -> Option<Self> {
        look(port).map(Departures)
    }

    /// Adds the frames that were refused, and those that never left, to the reports of the streams that left by this
    /// port. Returns a note if frames never left. To be called after the wait for the residue.
    pub fn settle(&self, port: &Port, leaving: &mut [&mut SendReport]) -> Option<String> {
        let sent = leaving.iter().map(|report| report.sent).sum();
        let deadline_ns = monotonic_ns() + COUNTERS_LAG_NS;
        let (refused, vanished) = loop {
            let (refused, vanished) = gone(&self.0, &look(port)?, sent);
            if vanished == 0 || monotonic_ns() > deadline_ns {
                break (refused, vanished);
            }
            std::thread::sleep(PAUSE);
        };
        book(refused, leaving, |report| &mut report.refused);
        book(vanished, leaving, |report| &mut report.vanished);
        (vanished > 0).then(|| {
            format!(
                "port {}: {vanished} frames never left: its driver had no room for them; they count as not sent",
                port.told.name
            )
        })
    }
}

fn look(port: &Port) -> Option<LinkState> {
    match &port.tx {
        Tx::Live(link) => link.look(),
        Tx::Packets(_) => None,
    }
}

/// Returns how many frames the ring behind the port refused, and how many never left. If the counter of sent frames did
/// not change, the driver does not count such frames, and the second number is 0.
fn gone(before: &LinkState, now: &LinkState, sent: u64) -> (u64, u64) {
    let refused = now.dropped.saturating_sub(before.dropped);
    let left = now.sent.saturating_sub(before.sent);
    let known = left > 0 && !now.tap;
    (
        refused,
        if known {
            sent.saturating_sub(left + refused)
        } else {
            0
        },
    )
}

/// Distributes frames over the streams in proportion to the frames that each sent, because it is not known whose they
/// were.
fn book(frames: u64, leaving: &mut [&mut SendReport], at: impl Fn(&mut SendReport) -> &mut u64) {
    let mut unbooked = frames;
    let mut sent: u64 = leaving.iter().map(|report| report.sent).sum();
    for report in leaving {
        let share = u128::from(unbooked) * u128::from(report.sent) / u128::from(sent.max(1));
        let share = (share as u64).min(report.sent);
        sent -= report.sent;
        *at(report) = share;
        unbooked -= share;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(sent: u64, dropped: u64, tap: bool) -> LinkState {
        LinkState {
            up: true,
            tap,
            sent,
            dropped,
        }
    }

    /// Frames that neither left nor were refused count as vanished, but not at a TAP or a driver that does not count.
    #[test]
    fn frames_that_never_left_are_told_from_refused_ones() {
        let before = state(100, 10, false);
        assert_eq!(gone(&before, &state(1080, 20, false), 1000), (10, 10));
        assert_eq!(
            gone(&before, &state(1093, 20, false), 1000),
            (10, 0),
            "others sent, too"
        );
        assert_eq!(gone(&before, &state(600, 20, true), 1000), (10, 0));
        assert_eq!(gone(&before, &state(100, 10, false), 1000), (0, 0));
    }
}
