// SPDX-License-Identifier: Apache-2.0
//! The counters of a port's driver, before and after a trial. They show what the generator does not see: live frames
//! that never left, and arriving frames that the port's card dropped.

use std::time::Duration;

use crate::host::clock::monotonic_ns;
use crate::host::netlink::LinkState;
use crate::port::{Port, Tx};
use crate::protocol::OpenedPort;
use crate::real_time::departed::{Departed, HELD};
use crate::send::report::SendReport;

/// Time after which every driver has updated its counters.
const COUNTERS_LAG_NS: u64 = 2_500_000_000;
const PAUSE: Duration = Duration::from_millis(20);
/// Drivers that count each arriving frame at once; "" is a device without hardware.
const COUNT_AT_ONCE: [&str; 4] = ["", "tun", "veth", "virtio_net"];
/// The driver that holds no frames, and counts all that it took. Of another driver it is not known.
const HOLDS_NONE: &str = "veth";

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
    /// The driver does not count live frames, or not the last ones.
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
        let mut counts = port.counts_live_frames;
        let wait = &mut || pause(deadline_ns);
        let departures = self.settle(&port.told, &mut counts, leaving, &|| look(port), wait);
        port.counts_live_frames = counts;
        departures
    }

    /// Does the work of `departures`. `look` reads the counters; `wait` pauses, or returns false if the time is up.
    /// `counts` is set if the counters show whether the driver counts live frames.
    fn settle(
        &self,
        port: &OpenedPort,
        counts: &mut Option<bool>,
        leaving: &mut [Leaving],
        look: &dyn Fn() -> Option<LinkState>,
        wait: &mut dyn FnMut() -> bool,
    ) -> Departures {
        let sent = leaving.iter().map(|part| part.report.sent).sum();
        let accounted = leaving.iter().map(|part| part.accounted).sum();
        let holds_none = port.driver == HOLDS_NONE;
        *counts = counts.or(holds_none.then_some(true));
        let departed = loop {
            let Some(now) = look() else {
                return Departures::default();
            };
            let departed = Departed::between(&self.0, &now, sent, accounted);
            if self.0.tap || departed.suffices(*counts) || !wait() {
                break departed;
            }
        };
        let weight = |part: &Leaving| part.report.sent;
        book(departed.refused, leaving, weight, |report| &mut report.refused);
        if self.0.tap {
            // A TAP counts frames when they are read from its file, so no frame vanishes there.
            return Departures::default();
        }
        *counts = departed.judge(*counts);
        let believed = counts.unwrap_or(departed.mostly_counted());
        let held = if holds_none { 0 } else { HELD };
        let vanished = if believed { departed.vanished(held) } else { 0 };
        let missing = |part: &Leaving| part.report.sent.saturating_sub(part.accounted);
        book(vanished, leaving, missing, |report| &mut report.vanished);
        Departures {
            gone: (vanished > 0).then(|| {
                format!(
                    "port {}: {vanished} frames never left: its driver had no room for them; they count as not sent",
                    port.name
                )
            }),
            uncounted: departed.uncounted(port, believed, vanished),
        }
    }

    /// Returns how many arriving frames the card dropped for lack of room, at most `missing`: the number of frames that
    /// did not arrive and that nothing else of the tester dropped. To be called after the wait for the residue.
    pub fn missed(&self, port: &Port, missing: u64, deadline_ns: u64) -> u64 {
        loop {
            let found = look(port)
                .map_or(0, |now| moved(self.0.missed, now.missed))
                .min(missing);
            let at_once = COUNT_AT_ONCE.contains(&port.told.driver.as_str());
            if at_once || found == missing || !pause(deadline_ns) {
                return found;
            }
        }
    }

    /// Returns how many frames arrived damaged and were dropped by the card, at most `missing`: the number of frames that
    /// did not arrive and that nothing of the tester dropped. To be called after `missed`, which waits for the counters.
    pub fn damaged(&self, port: &Port, missing: u64) -> u64 {
        look(port)
            .map_or(0, |now| moved(self.0.damaged, now.damaged))
            .min(missing)
    }
}

/// Returns the fault of a port at which frames of the trial arrived damaged; None if there were none.
pub fn cable_fault(damaged: u64) -> Option<String> {
    (damaged > 0).then(|| {
        format!(
            "{damaged} frames arrived damaged (wrong FCS or length), which is no loss of the DUT: check the cable of \
             this port"
        )
    })
}

fn look(port: &Port) -> Option<LinkState> {
    port.counters.as_ref()?.look()
}

/// Pauses, or returns false if the deadline has passed.
fn pause(deadline_ns: u64) -> bool {
    let early = monotonic_ns() <= deadline_ns;
    if early {
        std::thread::sleep(PAUSE);
    }
    early
}

/// Returns how many frames several counters of the same kind counted. Some drivers count one frame in several of them, so
/// the counter that moved most is taken, and never a sum.
fn moved(before: [u64; 3], now: [u64; 3]) -> u64 {
    let moved = now.iter().zip(before);
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
            damaged: [1, 2, 3],
        }
    }

    /// A trial with two parts, on a port whose driver counted `left` frames as sent and `refused` as dropped.
    struct Trial {
        driver: &'static str,
        sent: [u64; 2],
        accounted: [u64; 2],
        left: u64,
        refused: u64,
        tap: bool,
        counts: Option<bool>,
    }

    const TRIAL: Trial = Trial {
        driver: "virtio_net",
        sent: [500_000; 2],
        accounted: [500_000; 2],
        left: 1_000_000,
        refused: 0,
        tap: false,
        counts: None,
    };

    /// The remarks on a trial, and what it left behind.
    struct Settled {
        gone: Option<String>,
        uncounted: Option<String>,
        vanished: [u64; 2],
        refused: u64,
        counts: Option<bool>,
        waits: u32,
    }

    const WAITS: u32 = 3;

    impl Trial {
        /// Settles the departures; the time is up after `WAITS` pauses.
        fn settle(self) -> Settled {
            let mut reports = [(); 2].map(|()| SendReport::new(&Schedule::flood(0)).unwrap());
            let mut leaving = Vec::new();
            for ((report, sent), accounted) in reports.iter_mut().zip(self.sent).zip(self.accounted) {
                report.sent = sent;
                leaving.push(Leaving { report, accounted });
            }
            let port = OpenedPort {
                name: "west".into(),
                interface: "x".into(),
                driver: self.driver.into(),
                mac: String::new(),
                mtu: 1500,
                carrier: true,
                speed_mbps: None,
                sender: String::new(),
                receiver: String::new(),
                notes: Vec::new(),
            };
            let mut counts = self.counts;
            let mut waits = 0;
            let before = PortCounters(state(100, 10, self.tap));
            let now = state(100 + self.left, 10 + self.refused, self.tap);
            let departures = before.settle(&port, &mut counts, &mut leaving, &|| Some(now), &mut || {
                waits += 1;
                waits <= WAITS
            });
            Settled {
                gone: departures.gone,
                uncounted: departures.uncounted,
                vanished: [reports[0].vanished, reports[1].vanished],
                refused: reports.iter().map(|report| report.refused).sum(),
                counts,
                waits: waits.min(WAITS),
            }
        }
    }

    /// Frames that neither left nor were refused vanished. They are missing frames: a part that arrived whole has none.
    #[test]
    fn frames_that_never_left_are_told_from_refused_ones() {
        let veth = |left, tap| {
            let trial = Trial {
                driver: "veth",
                sent: [1000; 2],
                accounted: [1000, 900],
                left,
                refused: 10,
                tap,
                ..TRIAL
            };
            trial.settle()
        };
        let settled = veth(1980, false);
        assert!(settled.gone.unwrap().contains("10 frames never left"));
        assert_eq!((settled.vanished, settled.refused), ([0, 10], 10));
        assert_eq!(settled.uncounted, None);
        assert_eq!(veth(1993, false).vanished, [0, 0], "others sent, too");
        assert_eq!(veth(0, false).vanished, [0, 100], "a frame that arrived has left");
        let tap = veth(500, true);
        assert_eq!(
            (tap.gone, tap.uncounted, tap.refused, tap.waits),
            (None, None, 10, 0)
        );
    }

    /// Frames that the driver holds left, so they excuse no frame that the DUT lost.
    #[test]
    fn held_frames_excuse_no_loss() {
        let trial = Trial {
            accounted: [500_000, 499_800],
            left: 999_744,
            ..TRIAL
        };
        let settled = trial.settle();
        assert_eq!((settled.gone, settled.vanished), (None, [0, 0]));
        let warning = settled.uncounted.unwrap();
        assert!(
            warning.starts_with(
                "the last departures from port west may not be counted by its driver virtio_net"
            )
        );
        assert_eq!(settled.counts, Some(true));

        let trial = Trial {
            accounted: [500_000, 499_800],
            ..TRIAL
        };
        assert_eq!(trial.settle().uncounted, None, "all were counted");
    }

    /// More uncounted frames than any driver holds never left; as many as it may hold do not count as such.
    #[test]
    fn more_frames_than_a_driver_holds_never_left() {
        for (driver, vanished) in [("veth", 10_000), ("virtio_net", 10_000 - HELD)] {
            let trial = Trial {
                driver,
                accounted: [500_000, 489_800],
                left: 990_000,
                ..TRIAL
            };
            let settled = trial.settle();
            assert_eq!(settled.vanished, [0, vanished]);
            assert!(settled.gone.is_some());
            assert_eq!(settled.uncounted.is_some(), driver == "virtio_net");
        }
    }

    /// If frames are missing and the driver does not count live frames, every figure says so, and no frame vanishes.
    #[test]
    fn a_driver_that_does_not_count_is_named() {
        for (left, accounted) in [(0, 499_000), (1, 499_000), (0, 500_000), (1, 500_000)] {
            let trial = Trial {
                driver: "mlx5_core",
                accounted: [500_000, accounted],
                left,
                ..TRIAL
            };
            let settled = trial.settle();
            assert_eq!((settled.gone, settled.vanished), (None, [0, 0]));
            assert_eq!(settled.counts, Some(false));
            let warning = settled.uncounted.unwrap_or_default();
            let named = warning.starts_with("departures from port west") && warning.contains("mlx5_core");
            assert_eq!(named, accounted < 500_000);
        }
    }

    /// A frame of others shows nothing about a driver if no test frame arrives. What an earlier trial showed still holds.
    #[test]
    fn nothing_vanished_if_nothing_arrives_and_a_frame_of_others_left() {
        let trial = |left, refused, counts| {
            let trial = Trial {
                accounted: [0; 2],
                left,
                refused,
                counts,
                ..TRIAL
            };
            trial.settle()
        };
        for (left, refused) in [(0, 0), (1, 0), (1, 600_000)] {
            let settled = trial(left, refused, None);
            assert_eq!((settled.gone, settled.vanished), (None, [0, 0]));
            assert_eq!((settled.uncounted.is_some(), settled.counts), (true, None));
        }
        let settled = trial(1, 0, Some(true));
        assert_eq!(settled.vanished.iter().sum::<u64>(), 999_999 - HELD);
        let settled = trial(0, 1_000_000, None);
        assert_eq!(
            (settled.gone, settled.uncounted),
            (None, None),
            "all were refused"
        );
        let settled = trial(1_000_001, 0, None);
        assert_eq!(
            (settled.gone, settled.uncounted),
            (None, None),
            "the DUT lost all"
        );
    }

    /// The counters are awaited only while they can show something more.
    #[test]
    fn counters_are_awaited_only_if_they_can_show_more() {
        let waits = |counts, left, missing: u64| {
            let trial = Trial {
                accounted: [500_000, 500_000 - missing],
                left,
                counts,
                ..TRIAL
            };
            trial.settle().waits
        };
        assert_eq!(waits(None, 999_744, 0), 0, "a driver that holds frames");
        assert_eq!(waits(Some(true), 999_744, 0), 0);
        assert_eq!(waits(None, 1_000_000, 200), 0, "all were counted");
        assert_eq!(waits(Some(false), 0, 200), 0, "nothing is to be learned");
        assert_eq!(waits(None, 999_744, 200), WAITS, "frames are missing");
        assert_eq!(
            waits(None, 0, 0),
            WAITS,
            "whether the driver counts is to be learned"
        );
        assert_eq!(waits(Some(true), 600_000, 0), WAITS, "counters of the next trial");
        let few = Trial {
            sent: [1000; 2],
            accounted: [1000; 2],
            left: 0,
            ..TRIAL
        };
        assert_eq!(few.settle().waits, 0, "too few to learn from");
    }

    /// One frame that a card counts in two counters of a kind is one frame.
    #[test]
    fn frames_that_the_card_dropped_are_known() {
        for (now, expected) in [([5, 6, 7], 0), ([5, 6, 27], 20), ([25, 6, 27], 20)] {
            assert_eq!(moved([5, 6, 7], now), expected);
        }
        assert_eq!(moved([5, 6, 7], [0, 9, 7]), 3, "a counter began anew");
    }

    /// Frames that a card found damaged are a fault of the trial that names the cable.
    #[test]
    fn a_damaging_cable_is_a_fault() {
        assert_eq!(cable_fault(0), None);
        let fault = cable_fault(12).unwrap();
        assert!(fault.starts_with("12 frames arrived damaged") && fault.contains("check the cable"));
    }
}
