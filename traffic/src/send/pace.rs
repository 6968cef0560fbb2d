// SPDX-License-Identifier: Apache-2.0
//! The schedule of departures: frame i is due when the rates up to then amount to i frames. All functions are pure.

/// After a stall the sender catches up at no more than this multiple of the rate. A burst would overflow the DUT's
/// ring, and the tester would be the cause of the loss.
pub const CATCH_UP: f64 = 1.1;
/// Frames that are due within this time may leave together: a system call for each frame is too slow at high rates.
const SLACK_NS: f64 = 20_000.0;
/// A number of frames that is this close to a whole number is rounded to it: the error of binary fractions is smaller.
const WHOLE: f64 = 1e-6;
/// A trial sends all its frames. If that takes longer than intended, sending ends after LONGEST times the duration plus
/// LONGEST_MORE_NS, and frames that have not left by then are unsent. docs/generators.md documents this, and
/// `longest_s` in generators/base.py uses it, too.
const LONGEST: f64 = 1.5;
const LONGEST_MORE_NS: u64 = 500_000_000;

/// Returns the time at which a trial in real time stops sending, even if frames have not left.
pub fn deadline_ns(start_ns: u64, duration_ns: u64) -> u64 {
    start_ns + (duration_ns as f64 * LONGEST) as u64 + LONGEST_MORE_NS
}

/// A rate that applies from a time on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Time after the start, s.
    pub from_s: f64,
    /// Frames per second; 0 sends none.
    pub fps: f64,
}

/// A part of a schedule in which the rate stays the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stretch {
    /// Number of its first frame. A stretch without frames has the number of the next stretch.
    pub first: u64,
    /// Time after the start at which its first frame is due.
    pub due_ns: f64,
    pub interval_ns: f64,
}

/// The times at which the frames of one stream may leave, in nanoseconds of one clock.
#[derive(Debug, Clone)]
pub struct Schedule {
    start_ns: u64,
    /// One stretch for each rate, in the order of time. If it is empty, frames leave as fast as possible.
    stretches: Vec<Stretch>,
    /// Number of frames; None: no limit.
    planned: Option<u64>,
    /// Number of frames that `take` has released.
    sent: u64,
    /// Time after the start before which the next frame may not leave. It advances with each frame by the interval of
    /// catching up, and is never more than SLACK_NS behind the clock.
    gate_ns: f64,
    /// Time by which pauses may still postpone the frames after them.
    leeway_ns: u64,
    /// Time by which pauses have postponed frames. Lateness does not take it into account.
    put_off_ns: u64,
}

impl Schedule {
    /// Makes a schedule from rates, each of which applies until the next one; the first applies from 0. If the rate
    /// changes within an interval, the rest of the interval is scaled to the new rate, so that there is neither a gap
    /// nor a burst at the change.
    pub fn at_rates(start_ns: u64, rates: &[Rate], duration_s: f64) -> Self {
        let mut stretches = Vec::new();
        let mut made = 0.0_f64; // number of frames, with the part of the next one, at which the rate begins
        for (place, rate) in rates.iter().enumerate() {
            if (made - made.round()).abs() < WHOLE {
                made = made.round();
            }
            let interval_ns = 1e9 / rate.fps;
            let rest = made.ceil() - made;
            stretches.push(Stretch {
                first: made.ceil() as u64,
                due_ns: rate.from_s * 1e9 + if rest > 0.0 { rest * interval_ns } else { 0.0 },
                interval_ns,
            });
            let until_s = rates.get(place + 1).map_or(duration_s, |next| next.from_s);
            made += rate.fps * (until_s - rate.from_s);
        }
        Schedule {
            planned: Some(made.round().max(1.0) as u64),
            stretches,
            ..Schedule::flood(start_ns)
        }
    }

    /// Makes a schedule without a rate: frames leave as fast as possible.
    pub fn flood(start_ns: u64) -> Self {
        Schedule {
            start_ns,
            stretches: Vec::new(),
            planned: None,
            sent: 0,
            gate_ns: 0.0,
            leeway_ns: 0,
            put_off_ns: 0,
        }
    }

    /// Lets pauses postpone the frames after them, by this time in total. Pauses within it are not caught up.
    pub fn with_leeway(mut self, leeway_ns: u64) -> Self {
        self.leeway_ns = leeway_ns;
        self
    }

    /// Returns the time by which pauses may still postpone the frames after them.
    pub fn leeway_ns(&self) -> u64 {
        self.leeway_ns
    }

    /// Returns the time by which pauses have postponed the frames to come.
    pub fn put_off_ns(&self) -> u64 {
        self.put_off_ns
    }

    /// Postpones the frames after a pause by its length, as far as the leeway allows; returns by how much, ns.
    pub fn put_off(&mut self, pause_ns: u64) -> u64 {
        let granted_ns = pause_ns.min(self.leeway_ns);
        self.leeway_ns -= granted_ns;
        self.put_off_ns += granted_ns;
        granted_ns
    }

    /// Sets the number of frames, regardless of the time that they take.
    pub fn burst(mut self, frames: u64) -> Self {
        self.planned = Some(frames);
        self
    }

    /// Returns the schedule of one of `parts` senders that take turns. It has the frames `number`, `number + parts` and
    /// so on of this schedule, at the same times.
    pub fn every(self, number: u64, parts: u64) -> Self {
        let whole = |frame: u64| number + frame * parts;
        let mut stretches = self.stretches.clone();
        for (stretch, of) in stretches.iter_mut().zip(&self.stretches) {
            stretch.first = of.first.saturating_sub(number).div_ceil(parts);
            stretch.interval_ns *= parts as f64;
            let ahead = whole(stretch.first) - of.first;
            if ahead > 0 {
                stretch.due_ns += ahead as f64 * of.interval_ns;
            }
        }
        Schedule {
            stretches,
            planned: self.planned.map(|planned| (planned + parts - 1 - number) / parts),
            ..self
        }
    }

    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// Sets the time of the start.
    pub fn begin_at(&mut self, start_ns: u64) {
        self.start_ns = start_ns;
    }

    pub fn planned(&self) -> Option<u64> {
        self.planned
    }

    pub fn sent(&self) -> u64 {
        self.sent
    }

    pub fn stretches(&self) -> &[Stretch] {
        &self.stretches
    }

    fn stretch_of(&self, frame: u64) -> Option<&Stretch> {
        self.stretches.iter().rev().find(|stretch| stretch.first <= frame)
    }

    /// Returns the time between the last two frames; 0 if frames leave as fast as possible.
    pub fn last_interval_ns(&self) -> f64 {
        let last = self.planned.map_or(u64::MAX, |planned| planned.saturating_sub(1));
        self.stretch_of(last).map_or(0.0, |stretch| stretch.interval_ns)
    }

    /// Returns the time between two frames at the highest rate; 0 if frames leave as fast as possible.
    pub fn least_interval_ns(&self) -> f64 {
        let intervals = self.stretches.iter().map(|stretch| stretch.interval_ns);
        if self.is_paced() {
            intervals.fold(f64::INFINITY, f64::min)
        } else {
            0.0
        }
    }

    pub fn is_paced(&self) -> bool {
        !self.stretches.is_empty()
    }

    pub fn finished(&self) -> bool {
        self.planned == Some(self.sent)
    }

    /// Returns the time at which a frame is due, unless a pause postpones it.
    pub fn due_ns(&self, frame: u64) -> u64 {
        let after_ns = self.stretch_of(frame).map_or(0.0, |stretch| {
            stretch.due_ns + (frame - stretch.first) as f64 * stretch.interval_ns
        });
        self.start_ns + after_ns as u64
    }

    /// Returns the earliest time at which the next frame may leave.
    pub fn next_ns(&self) -> u64 {
        let due_ns = self.due_ns(self.sent) + self.put_off_ns;
        due_ns.max(self.start_ns + self.gate_ns as u64)
    }

    /// Releases the frames that may leave at `now_ns`, at most `most`, and returns their number. They count as sent.
    pub fn take(&mut self, now_ns: u64, most: usize) -> usize {
        if now_ns < self.start_ns {
            return 0;
        }
        let left = self.planned.map_or(u64::MAX, |planned| planned - self.sent);
        let most = left.min(most as u64) as usize;
        if !self.is_paced() {
            self.sent += most as u64;
            return most;
        }
        self.gate_ns = self.gate_ns.max((now_ns - self.start_ns) as f64 - SLACK_NS);
        let mut taken = 0;
        while taken < most && self.next_ns() <= now_ns {
            self.gate_ns += self
                .stretch_of(self.sent)
                .map_or(0.0, |stretch| stretch.interval_ns)
                / CATCH_UP;
            self.sent += 1;
            taken += 1;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at_rates(rates: &[(f64, f64)], duration_s: f64) -> Schedule {
        let rates: Vec<Rate> = rates.iter().map(|&(from_s, fps)| Rate { from_s, fps }).collect();
        Schedule::at_rates(0, &rates, duration_s)
    }

    fn steady(fps: f64, duration_s: f64) -> Schedule {
        at_rates(&[(0.0, fps)], duration_s)
    }

    /// Runs a schedule by a fake clock that ticks every `tick` ns; no frame leaves during `stall`.
    fn run(mut schedule: Schedule, until: u64, tick: u64, stall: std::ops::Range<u64>) -> Vec<(u64, usize)> {
        let mut departures = Vec::new();
        let mut now = 0;
        while now < until {
            if !stall.contains(&now) {
                let taken = schedule.take(now, 64);
                if taken > 0 {
                    departures.push((now, taken));
                }
            }
            now += tick;
        }
        departures
    }

    /// Without stalls, frames leave one by one, each when it is due, and their number is exact.
    #[test]
    fn each_frame_leaves_when_due() {
        let departures = run(steady(40_000.0, 0.1), 200 * MS, 1_000, 0..0);
        assert_eq!(departures.len(), 4000);
        for (i, &(at, frames)) in departures.iter().enumerate() {
            assert_eq!((at, frames), (i as u64 * 25_000, 1));
        }
    }

    /// An interval that is no whole number of nanoseconds does not drift.
    #[test]
    fn odd_rates_do_not_drift() {
        let schedule = steady(148_809.0, 60.0);
        let last = schedule.due_ns(schedule.planned().unwrap());
        assert!(last.abs_diff(60_000 * MS) < 10, "{last}");
    }

    /// After a stall the schedule is caught up, but never faster than 1.1 times the rate.
    #[test]
    fn catching_up_makes_no_burst() {
        let departures = run(steady(50_000.0, 0.2), 200 * MS, 500, 50 * MS..55 * MS);
        let total: usize = departures.iter().map(|d| d.1).sum();
        assert_eq!(total, 10_000);
        let in_ms = |from: u64| -> usize {
            departures
                .iter()
                .filter(|d| d.0 >= from && d.0 < from + MS)
                .map(|d| d.1)
                .sum()
        };
        for start in (55..100).map(|ms| ms * MS) {
            assert!(in_ms(start) <= 57, "{} frames in the ms at {start}", in_ms(start));
        }
        assert!(in_ms(56 * MS) >= 54, "it does catch up");
        assert_eq!(in_ms(150 * MS), 50, "and is back on schedule");
    }

    /// A pause postpones the frames after it as far as the leeway allows, and no further.
    #[test]
    fn pauses_put_off_what_follows() {
        let mut schedule = steady(1_000.0, 1.0).with_leeway(5 * MS);
        assert_eq!(schedule.take(0, 64), 1);
        assert_eq!(schedule.next_ns(), MS);
        assert_eq!(schedule.put_off(3 * MS), 3 * MS);
        assert_eq!((schedule.next_ns(), schedule.due_ns(1)), (4 * MS, MS));
        assert_eq!(schedule.put_off(3 * MS), 2 * MS);
        assert_eq!(schedule.put_off(MS), 0);
        assert_eq!((schedule.next_ns(), schedule.put_off_ns()), (6 * MS, 5 * MS));
    }

    /// No frame leaves before the start; a burst leaves at once and stops at its length.
    #[test]
    fn burst_stops_at_its_length() {
        let mut schedule = Schedule::flood(1_000).burst(100);
        assert_eq!(schedule.take(999, 64), 0);
        assert_eq!(schedule.take(1_000, 64), 64);
        assert_eq!(schedule.take(1_001, 64), 36);
        assert!(schedule.finished());
        assert_eq!(schedule.take(1_002, 64), 0);
    }

    /// The rate changes at the given times, a part of an interval is carried over, and each frame's due time is exact.
    #[test]
    fn the_rate_changes_in_mid_trial() {
        let schedule = at_rates(
            &[(0.0, 40_000.0), (0.5, 10_000.0), (1.0, 0.0), (1.25, 20_000.0)],
            1.5,
        );
        assert_eq!(schedule.planned(), Some(20_000 + 5_000 + 5_000));
        let due = |frame| schedule.due_ns(frame);
        assert_eq!(
            (due(19_999), due(20_000), due(20_001)),
            (499_975_000, 500 * MS, 500_100_000)
        );
        assert_eq!(
            (due(24_999), due(25_000), due(25_001)),
            (999_900_000, 1_250 * MS, 1_250_050_000)
        );
        assert_eq!(
            (schedule.last_interval_ns(), schedule.least_interval_ns()),
            (50_000.0, 25_000.0)
        );
        // Half of an interval of 100 µs has passed; the other half takes 25 µs.
        let odd = at_rates(&[(0.0, 10_000.0), (0.00125, 20_000.0)], 1.0);
        assert_eq!(
            (odd.due_ns(12), odd.due_ns(13), odd.due_ns(14)),
            (1_200_000, 1_275_000, 1_325_000)
        );
        let departures = run(odd, 2 * MS, 25_000, 0..0);
        assert!(departures.iter().all(|&(_, frames)| frames == 1));
        assert_eq!(departures.len(), 28); // 13 by 1.25 ms, 15 until 2 ms
    }

    /// Senders that take turns together send each frame when it is due, also where the rate changes.
    #[test]
    fn turns_add_up_to_the_whole() {
        for rates in [
            vec![(0.0, 30_011.0)],
            vec![
                (0.0, 40_000.0),
                (0.010_01, 7_000.0),
                (0.010_02, 0.0),
                (0.02, 90_001.5),
            ],
        ] {
            let whole = at_rates(&rates, 0.03);
            for parts in [1, 2, 3] {
                let all: Vec<Schedule> = (0..parts)
                    .map(|number| whole.clone().every(number, parts))
                    .collect();
                let planned = whole.planned().unwrap();
                assert_eq!(
                    all.iter().map(|part| part.planned().unwrap()).sum::<u64>(),
                    planned
                );
                for frame in 0..planned {
                    let due = all[(frame % parts) as usize].due_ns(frame / parts);
                    assert!(
                        due.abs_diff(whole.due_ns(frame)) <= 1,
                        "frame {frame} of {parts} parts"
                    );
                }
            }
        }
    }
}
