// SPDX-License-Identifier: Apache-2.0
//! The counters of a port's driver, before and after a trial. They show what the generator does not see: live frames
//! that never left, and arriving frames that the port's card dropped.

use std::time::Duration;

use crate::host::clock::monotonic_ns;
use crate::host::netlink::LinkState;
use crate::port::{Port, Tx};
use crate::protocol::OpenedPort;
use crate::send::report::SendReport;

/// Time after which every driver has updated its counters.
const COUNTERS_LAG_NS: u64 = 2_500_000_000;
const PAUSE: Duration = Duration::from_millis(20);
/// Drivers that count each arriving frame at once; "" is a device without hardware.
const COUNT_AT_ONCE: [&str; 4] = ["", "tun", "veth", "virtio_net"];
/// Largest number of frames that a driver holds in its queue after they left. It counts them when later frames leave.
const HELD: u64 = 4096;

/// The counters of a port before a trial.
pub struct PortCounters(LinkState);

/// A part of a stream, or noise, that left by a port.
pub struct Leaving<'a> {
    pub report: &'a mut SendReport,
    /// Number of its frames that arrived at a port of the tester, intact or damaged.
    pub accounted: u64,
}

/// Remarks on the departures from a port; None where there is none.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Departures {
    /// Frames never left.
    pub gone: Option<String>,
    /// The driver does not count live frames.
    pub uncounted: Option<String>,
}

/// Returns the time until which `PortCounters` waits for counters, if it is asked now.
pub fn deadline_ns() -> u64 {
    monotonic_ns() + COUNTERS_LAG_NS
}

impl PortCounters {
    /// Reads the counters; returns None if they cannot be read.
    pub fn begin(port: &Port) -> Option<Self> {
        look(port).map(PortCounters)
    }

    /// Adds the frames that were refused, and those that never left, to the reports of the parts that left by this
    /// port. To be called after the wait for the residue. A port that sends packets knows what left.
    pub fn departures(&self, port: &mut Port, leaving: &mut [Leaving], deadline_ns: u64) -> Departures {
        if !matches!(port.tx, Tx::Live(_)) {
            return Departures::default();
        }
        let mut counts = !port.counts_no_live_frames;
        let departures = self.settle(&port.told, &mut counts, leaving, deadline_ns, &|| look(port));
        port.counts_no_live_frames = !counts;
        departures
    }

    /// Does the work of `departures`; `look` reads the counters. `counts` is set to false if the counters show that the
    /// driver does not count live frames.
    fn settle(
        &self,
        port: &OpenedPort,
        counts: &mut bool,
        leaving: &mut [Leaving],
        deadline_ns: u64,
        look: &dyn Fn() -> Option<LinkState>,
    ) -> Departures {
        let sent = leaving.iter().map(|part| part.report.sent).sum();
        let accounted = leaving.iter().map(|part| part.accounted).sum();
        let gone = loop {
            let Some(now) = look() else {
                return Departures::default();
            };
            let gone = gone(&self.0, &now, sent, accounted);
            if now.tap || gone.booked >= sent || !*counts || monotonic_ns() > deadline_ns {
                break gone;
            }
            std::thread::sleep(PAUSE);
        };
        *counts &= self.0.tap || gone.counted || accounted <= gone.booked + HELD;
        let vanished = if *counts { gone.vanished } else { 0 };
        book(
            gone.refused,
            leaving,
            |part| part.report.sent,
            |report| &mut report.refused,
        );
        let missing = |part: &Leaving| part.report.sent.saturating_sub(part.accounted);
        book(vanished, leaving, missing, |report| &mut report.vanished);
        let known = self.0.tap || (gone.counted && *counts) || sent <= accounted;
        Departures {
            gone: (vanished > 0).then(|| {
                format!(
                    "port {}: {vanished} frames never left: its driver had no room for them; they count as not sent",
                    port.name
                )
            }),
            uncounted: (!known).then(|| {
                format!(
                    "departures from port {} are not counted by its driver {}: frames that its queue refuses count as lost (\"tx\": \"af_packet\" knows them)",
                    port.name, port.driver
                )
            }),
        }
    }

    /// Returns how many arriving frames the card dropped for lack of room, at most `missing`: the number of frames that
    /// did not arrive and that nothing else of the tester dropped. To be called after the wait for the residue.
    pub fn missed(&self, port: &Port, missing: u64, deadline_ns: u64) -> u64 {
        loop {
            let found = look(port).map_or(0, |now| missed(&self.0, &now)).min(missing);
            let at_once = COUNT_AT_ONCE.contains(&port.told.driver.as_str());
            if at_once || found == missing || monotonic_ns() > deadline_ns {
                return found;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

fn look(port: &Port) -> Option<LinkState> {
    port.counters.as_ref()?.look()
}

/// The departures from a port, as its counters show them.
struct Gone {
    refused: u64,
    vanished: u64,
    /// Number of frames that the driver counted, as sent or as refused.
    booked: u64,
    /// False if the driver counted none of these frames, or far fewer than arrived: it does not count such frames, and
    /// `vanished` is 0.
    counted: bool,
}

/// Returns how many of `sent` frames the ring behind the port refused, and how many never left. A frame that arrived
/// (`accounted`) has left, whatever the counters show. A TAP counts frames when they are read from its file, so no frame
/// vanishes there.
fn gone(before: &LinkState, now: &LinkState, sent: u64, accounted: u64) -> Gone {
    let refused = now.dropped.saturating_sub(before.dropped);
    let booked = refused + now.sent.saturating_sub(before.sent);
    let counted = booked > 0 && 2 * booked >= accounted;
    let vanished = if counted && !now.tap {
        sent.saturating_sub(booked.max(accounted))
    } else {
        0
    };
    Gone {
        refused,
        vanished,
        booked,
        counted,
    }
}

/// Returns how many arriving frames the card dropped for lack of room. Some drivers count one frame in several of these
/// counters, so the counter that moved most is taken, and never a sum.
fn missed(before: &LinkState, now: &LinkState) -> u64 {
    let moved = now.missed.iter().zip(before.missed);
    moved
        .map(|(now, before)| now.saturating_sub(before))
        .max()
        .unwrap_or(0)
}

/// Distributes frames over the parts in proportion to `weight`, because it is not known whose they were.
fn book(
    frames: u64,
    leaving: &mut [Leaving],
    weight: impl Fn(&Leaving) -> u64,
    at: impl Fn(&mut SendReport) -> &mut u64,
) {
    let mut unbooked = frames;
    let mut rest: u64 = leaving.iter().map(&weight).sum();
    for part in leaving {
        let most = weight(part);
        let share = u128::from(unbooked) * u128::from(most) / u128::from(rest.max(1));
        let share = (share as u64).min(most);
        rest -= most;
        *at(part.report) = share;
        unbooked -= share;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::send::pace::Schedule;

    fn state(sent: u64, dropped: u64, tap: bool) -> LinkState {
        LinkState {
            up: true,
            tap,
            sent,
            dropped,
            missed: [5, 6, 7],
        }
    }

    fn pair(before: &LinkState, now: &LinkState, sent: u64, accounted: u64) -> (u64, u64) {
        let gone = gone(before, now, sent, accounted);
        (gone.refused, gone.vanished)
    }

    /// Frames that neither left nor were refused count as vanished, but not at a TAP or a driver that does not count.
    #[test]
    fn frames_that_never_left_are_told_from_refused_ones() {
        let before = state(100, 10, false);
        assert_eq!(pair(&before, &state(1080, 20, false), 1000, 900), (10, 10));
        assert_eq!(
            pair(&before, &state(1093, 20, false), 1000, 900),
            (10, 0),
            "others sent, too"
        );
        assert_eq!(pair(&before, &state(600, 20, true), 1000, 300), (10, 0));
        assert_eq!(pair(&before, &state(100, 10, false), 1000, 900), (0, 0));
    }

    /// A frame that arrived has left, and one frame that others sent does not show that a driver counts ours.
    #[test]
    fn frames_that_arrived_have_left() {
        let before = state(100, 10, false);
        assert_eq!(pair(&before, &state(101, 10, false), 1000, 1000), (0, 0));
        assert_eq!(pair(&before, &state(101, 10, false), 1000, 990), (0, 0));
        assert_eq!(pair(&before, &state(1000, 10, false), 1000, 999), (0, 1));
    }

    /// Settles the departures of two parts of 5000 frames each, of which these arrived. Returns the remarks, the numbers
    /// of frames that vanished, and whether the driver counts.
    fn settled(now: LinkState, accounted: [u64; 2]) -> (Departures, [u64; 2], bool) {
        let mut reports = [(); 2].map(|()| SendReport::new(&Schedule::flood(0)).unwrap());
        let mut leaving = Vec::new();
        for (report, accounted) in reports.iter_mut().zip(accounted) {
            report.sent = 5000;
            leaving.push(Leaving { report, accounted });
        }
        let port = OpenedPort {
            name: "west".into(),
            interface: "x".into(),
            driver: "mlx5_core".into(),
            mac: String::new(),
            mtu: 1500,
            carrier: true,
            speed_mbps: None,
            sender: String::new(),
            receiver: String::new(),
            notes: Vec::new(),
        };
        let mut counts = true;
        let before = PortCounters(state(100, 10, now.tap));
        let departures = before.settle(&port, &mut counts, &mut leaving, 0, &|| Some(now));
        (departures, reports.map(|report| report.vanished), counts)
    }

    /// If frames are missing and the driver does not count live frames, every figure says so, and no frame vanishes.
    #[test]
    fn a_driver_that_does_not_count_is_named() {
        for others in [0, 1] {
            let (departures, vanished, counts) = settled(state(100 + others, 10, false), [5000, 4000]);
            let warning = departures.uncounted.unwrap();
            assert!(warning.contains("port west") && warning.contains("mlx5_core"));
            assert_eq!((departures.gone, vanished, counts), (None, [0, 0], false));
        }
        let (departures, _, counts) = settled(state(100, 10, false), [5000, 5000]);
        assert_eq!((departures, counts), (Departures::default(), false));
        let (departures, _, counts) = settled(state(100, 10, true), [5000, 4000]);
        assert_eq!((departures, counts), (Departures::default(), true), "a TAP");
    }

    /// Frames that never left are missing frames: a part that arrived whole has none of them.
    #[test]
    fn frames_that_never_left_belong_to_parts_with_missing_frames() {
        let (departures, vanished, counts) = settled(state(100 + 9900, 10, false), [5000, 4800]);
        assert!(departures.gone.unwrap().contains("100 frames never left"));
        assert_eq!((departures.uncounted, vanished, counts), (None, [0, 100], true));
    }

    /// The card's counters of lack of room are read, and one drop in two of them is one drop.
    #[test]
    fn frames_that_the_card_dropped_are_known() {
        let before = state(100, 10, false);
        let now = |missed| LinkState { missed, ..before };
        assert_eq!(missed(&before, &now([5, 6, 7])), 0);
        assert_eq!(missed(&before, &now([5, 6, 27])), 20);
        assert_eq!(missed(&before, &now([25, 6, 27])), 20);
        assert_eq!(missed(&before, &now([0, 9, 7])), 3, "a counter began anew");
    }
}
