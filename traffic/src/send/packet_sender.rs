// SPDX-License-Identifier: Apache-2.0
//! The sender of packets: one thread for each CPU sends the frames of all its streams when they are due.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::count::tx_stalls::LATE_NS;
use crate::failure::Outcome;
use crate::host::clock::{Clock, Monotonic};
use crate::host::threads;
use crate::send::outgoing::Outgoing;
use crate::send::report::SendReport;
use crate::send::waking::Waking;
use crate::wire::FrameSender;

/// Sends the streams of one CPU from the calling thread until all are over, or until `stop`. Returns the report of each
/// stream, and notes.
pub fn run(
    cpu: Option<usize>,
    streams: Vec<Outgoing>,
    ports: &mut [&mut dyn FrameSender],
    start_ns: u64,
    stop: &AtomicBool,
) -> Outcome<(Vec<SendReport>, Vec<String>)> {
    let notes = threads::pin_if_asked("sender", cpu);
    threads::senders_timer_slack();
    let reports = send(&Monotonic, streams, ports, start_ns, stop)?;
    threads::SENDERS.book();
    Ok((reports, notes))
}

/// Does the same with any clock.
fn send(
    clock: &impl Clock,
    mut streams: Vec<Outgoing>,
    ports: &mut [&mut dyn FrameSender],
    start_ns: u64,
    stop: &AtomicBool,
) -> Outcome<Vec<SendReport>> {
    let mut waking = Waking::default();
    waking.learn(clock, start_ns);
    let mut stopped = false;
    loop {
        let now = clock.now_ns();
        stopped |= stop.load(Ordering::Relaxed);
        if stopped || streams.iter().all(|stream| stream.over(now)) {
            break;
        }
        for stream in &mut streams {
            let port = stream.port;
            stream.step(&mut *ports[port], clock)?;
        }
        let now = clock.now_ns();
        let next = streams
            .iter()
            .map(|stream| stream.next_ns(now))
            .min()
            .unwrap_or(0);
        let until = streams.iter().map(|stream| stream.until_ns).max().unwrap_or(0);
        let behind = |now| streams.iter().any(|stream| stream.behind(now));
        waking.wait(clock, next.min(until), behind);
    }
    let ended_ns = clock.now_ns();
    for port in ports.iter_mut() {
        port.finish()?;
    }
    let drained_ns = clock.now_ns();
    for stream in &mut streams {
        if drained_ns - ended_ns > LATE_NS && stream.report.last_tx_ns > 0 {
            stream.report.last_tx_ns = drained_ns; // only then had all frames that the port had taken left
        }
        let left_over = stream.report.planned.is_some() && !stream.finished();
        stream.report.cut_ns = (left_over && !stopped).then_some(ended_ns);
    }
    Ok(streams.into_iter().map(Outgoing::close).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use crate::frame::noise::RawFrames;
    use crate::send::frame_source::Frames;
    use crate::send::pace::{CATCH_UP, Rate, Schedule, deadline_ns};
    use crate::wire::{Batch, Sent};

    const MS: u64 = 1_000_000;
    const START_NS: u64 = 30 * MS;
    /// Time that each reading of the clock takes.
    const STEP_NS: u64 = 1_000;

    /// A clock with coarse timers. Time passes when it is read and in sleeps. Timers fire at ticks, `late_ns` late.
    struct Coarse {
        now_ns: AtomicU64,
        tick_ns: u64,
        late_ns: u64,
        /// Pairs of times between which the process does not run.
        pauses: Vec<(u64, u64)>,
    }

    impl Clock for Coarse {
        fn now_ns(&self) -> u64 {
            let now = self.now_ns.fetch_add(STEP_NS, Ordering::Relaxed) + STEP_NS;
            let paused = self.pauses.iter().find(|&&(from, to)| from <= now && now < to);
            let now = paused.map_or(now, |&(_, to)| to);
            self.now_ns.store(now, Ordering::Relaxed);
            now
        }

        fn sleep_until(&self, at_ns: u64) {
            let woken = at_ns.next_multiple_of(self.tick_ns) + self.late_ns;
            self.now_ns.fetch_max(woken, Ordering::Relaxed);
        }
    }

    /// A port that takes each frame in `frame_ns`, and keeps the times of departure.
    struct Taking<'a> {
        clock: &'a Coarse,
        frame_ns: u64,
        left_ns: Vec<u64>,
    }

    impl FrameSender for Taking<'_> {
        fn send(&mut self, _: &Batch, range: std::ops::Range<usize>) -> Outcome<Sent> {
            for _ in range.clone() {
                let now = self.clock.now_ns.fetch_add(self.frame_ns, Ordering::Relaxed);
                self.left_ns.push(now);
            }
            Ok(Sent {
                taken: range.len(),
                refused: 0,
            })
        }
    }

    fn sent(fps: f64, seconds: f64, clock: &Coarse, frame_ns: u64) -> (SendReport, Vec<u64>) {
        sent_with_leeway(fps, seconds, clock, frame_ns, 0)
    }

    fn sent_with_leeway(
        fps: f64,
        seconds: f64,
        clock: &Coarse,
        frame_ns: u64,
        leeway_ns: u64,
    ) -> (SendReport, Vec<u64>) {
        let rates = [Rate { from_s: 0.0, fps }];
        let schedule = Schedule::at_rates(START_NS, &rates, seconds).with_leeway(leeway_ns);
        let frames = Frames::Raw(RawFrames::of(vec![vec![0; 60]]));
        let mut stream = Outgoing::new(frames, schedule, 0, Arc::default(), 0).unwrap();
        stream.until_ns = deadline_ns(START_NS, (seconds * 1e9) as u64);
        let mut port = Taking {
            clock,
            frame_ns,
            left_ns: Vec::new(),
        };
        let stop = AtomicBool::new(false);
        let mut reports = send(clock, vec![stream], &mut [&mut port], START_NS, &stop).unwrap();
        (reports.remove(0), port.left_ns)
    }

    fn clock(tick_ns: u64, late_ns: u64, pauses: &[(u64, u64)]) -> Coarse {
        Coarse {
            now_ns: AtomicU64::new(0),
            tick_ns,
            late_ns,
            pauses: pauses
                .iter()
                .map(|(from, to)| (START_NS + from * MS, START_NS + to * MS))
                .collect(),
        }
    }

    /// Returns the largest number of frames that left within any time of this length.
    fn most_within(left_ns: &[u64], window_ns: u64) -> usize {
        let within = |first: usize| left_ns[first..].partition_point(|at| at - left_ns[first] < window_ns);
        (0..left_ns.len()).map(within).max().unwrap_or(0)
    }

    /// With any timers and any pauses, all frames leave, and never faster than the schedule catches up.
    #[test]
    fn all_frames_leave_whatever_the_timers() {
        let pauses = [
            &[][..],
            &[(100, 101), (200, 250)],
            &[(100, 110), (115, 116), (490, 540)],
        ];
        for tick_ns in [1, 4 * MS, 10 * MS] {
            for late_ns in [0, MS] {
                for pauses in pauses {
                    for fps in [50.0, 4_000.0, 30_011.0] {
                        let (report, left) = sent(fps, 0.5, &clock(tick_ns, late_ns, pauses), 1_000);
                        let told = format!("{fps} fps, tick {tick_ns} ns, late {late_ns} ns, {pauses:?}");
                        assert_eq!(report.planned, Some(report.sent), "{told}");
                        assert_eq!(report.cut_ns, None, "{told}");
                        assert!(left.is_sorted() && left[0] >= START_NS, "{told}");
                        let most = (fps * CATCH_UP * 0.010).ceil() as usize + 2;
                        let seen = most_within(&left, 10 * MS);
                        assert!(seen <= most, "{told}: {seen} of {most} frames in 10 ms");
                    }
                }
            }
        }
    }

    /// Timers that are milliseconds late, as in a nested guest, do not make frames late.
    #[test]
    fn coarse_timers_do_not_make_frames_late() {
        for (tick_ns, late_ns) in [(1, 4 * MS), (4 * MS, 0), (10 * MS, 0)] {
            let (report, left) = sent(4_000.0, 2.0, &clock(tick_ns, late_ns, &[]), 1_000);
            assert!(left.last().unwrap() - START_NS < 2_001 * MS);
            let late = report.late_frames;
            assert!(
                late < 400,
                "{late} of 8000 frames late: tick {tick_ns} ns, late {late_ns} ns"
            );
        }
    }

    /// If a pause delays the last frames of a trial, the trial lasts until they have left.
    #[test]
    fn a_pause_at_the_end_makes_the_trial_longer() {
        let (report, left) = sent(10_000.0, 1.0, &clock(1, 0, &[(990, 1_040)]), 1_000);
        assert_eq!(report.sent, 10_000);
        let took = left.last().unwrap() - START_NS;
        assert!((1_040 * MS..1_100 * MS).contains(&took), "{took} ns");
        let [stall] = &report.stalls[..] else {
            panic!("{:?}", report.stalls)
        };
        assert!(stall.at_ns.abs_diff(START_NS + 990 * MS) < 200_000);
        assert!((stall.ms - 50.0).abs() < 0.3);
    }

    /// Within the leeway a stall is as long as its pause, and frames continue at their rate. The part of a pause beyond
    /// the leeway is caught up.
    #[test]
    fn a_pause_within_the_leeway_is_not_made_good() {
        let pauses = [(100, 104), (300, 304), (500, 504)];
        let (report, left) = sent_with_leeway(10_000.0, 1.0, &clock(1, 0, &pauses), 1_000, 10 * MS);
        assert_eq!((report.sent, report.cut_ns), (10_000, None));
        let [first, second, third] = &report.stalls[..] else {
            panic!("{:?}", report.stalls)
        };
        for stall in [first, second] {
            assert!(
                (stall.until_ns - stall.at_ns).abs_diff(4 * MS) < 400_000,
                "{stall:?}"
            );
        }
        // The leeway covers 2 ms of the third pause. The other 2 ms take ten times as long to catch up.
        assert!(
            (third.until_ns - third.at_ns).abs_diff(24 * MS) < 3 * MS,
            "{third:?}"
        );
        let between = |from: u64, to: u64| {
            let within = |at: &&u64| (START_NS + from * MS..START_NS + to * MS).contains(*at);
            left.iter().filter(within).count()
        };
        assert!(between(105, 295).abs_diff(1_900) <= 1);
        let took = left.last().unwrap() - START_NS;
        assert!(took.abs_diff(1_010 * MS) < MS, "{took} ns");
        // Lateness counts from the time at which a frame was due at first: half of the frames are 8 ms late or more.
        assert!(report.lateness.value_at_quantile(0.5) > 7 * MS);
        assert!(report.lateness.value_at_quantile(0.9) > 9 * MS);
    }

    /// If the port is too slow, the trial ends at its longest time, the other frames are unsent, and there is no stall.
    #[test]
    fn overload_ends_at_the_bound() {
        let (report, _) = sent(10_000.0, 1.0, &clock(1, 0, &[]), 250_000);
        let deadline_ns = deadline_ns(START_NS, 1_000 * MS);
        assert!((7_500..8_000).contains(&report.sent), "{}", report.sent);
        assert!(report.cut_ns.unwrap().abs_diff(deadline_ns) < 4 * MS);
        assert_eq!(report.stalls, []);
        let (report, _) = sent(10_000.0, 1.0, &clock(1, 0, &[]), 100_000);
        assert_eq!((report.sent, report.cut_ns), (10_000, None));
    }
}
