// SPDX-License-Identifier: Apache-2.0
//! The departure schedule: frame i is due at start + i × interval, kept by the clock and pure.

/// After a stall frames follow at most so much faster than intended: a burst would overflow the DUT's ring,
/// and the loss would be the tester's.
pub const CATCH_UP: f64 = 1.1;
/// How far behind frames may leave together: the price of a system call per frame at high rates.
const SLACK_NS: f64 = 20_000.0;

/// When the frames of one stream may leave. Times are nanoseconds of one clock, relative to nothing else.
#[derive(Debug)]
pub struct Schedule {
    start_ns: u64,
    /// 0: as fast as possible.
    interval_ns: f64,
    planned: Option<u64>,
    sent: u64,
    /// No frame leaves before this; moves with the frames that left, never far behind the clock.
    gate_ns: f64,
}

impl Schedule {
    pub fn at_rate(start_ns: u64, rate_fps: f64, duration_s: f64) -> Self {
        Schedule {
            start_ns,
            interval_ns: 1e9 / rate_fps,
            planned: Some((rate_fps * duration_s).round().max(1.0) as u64),
            sent: 0,
            gate_ns: 0.0,
        }
    }

    pub fn flood(start_ns: u64) -> Self {
        Schedule {
            start_ns,
            interval_ns: 0.0,
            planned: None,
            sent: 0,
            gate_ns: 0.0,
        }
    }

    pub fn burst(start_ns: u64, frames: u64) -> Self {
        Schedule {
            planned: Some(frames),
            ..Schedule::flood(start_ns)
        }
    }

    /// Of a schedule of several who take turns, the frames of one: its number of so many.
    pub fn every(mut self, number: u64, parts: u64) -> Self {
        self.interval_ns *= parts as f64;
        self.planned = self.planned.map(|planned| (planned + parts - 1 - number) / parts);
        self
    }

    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// The first frame is due at this time instead.
    pub fn begin_at(&mut self, start_ns: u64) {
        self.start_ns = start_ns;
    }

    pub fn planned(&self) -> Option<u64> {
        self.planned
    }

    pub fn sent(&self) -> u64 {
        self.sent
    }

    pub fn interval_ns(&self) -> f64 {
        self.interval_ns
    }

    pub fn is_paced(&self) -> bool {
        self.interval_ns > 0.0
    }

    pub fn finished(&self) -> bool {
        self.planned == Some(self.sent)
    }

    pub fn due_ns(&self, frame: u64) -> u64 {
        self.start_ns + (frame as f64 * self.interval_ns) as u64
    }

    /// When the next frame may leave.
    pub fn next_ns(&self) -> u64 {
        self.due_ns(self.sent).max(self.start_ns + self.gate_ns as u64)
    }

    /// How many frames, at most `most`, may leave at `now_ns`; they count as sent.
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
            self.sent += 1;
            self.gate_ns += self.interval_ns / CATCH_UP;
            taken += 1;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Runs a schedule against a fake clock that ticks every `tick` ns but stands still during `stall`.
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

    /// On time, frames leave one by one, each at its own time, and the count is exact.
    #[test]
    fn each_frame_leaves_when_due() {
        let departures = run(Schedule::at_rate(0, 40_000.0, 0.1), 200 * MS, 1_000, 0..0);
        assert_eq!(departures.len(), 4000);
        for (i, &(at, frames)) in departures.iter().enumerate() {
            assert_eq!((at, frames), (i as u64 * 25_000, 1));
        }
    }

    /// An interval that is no whole number of nanoseconds does not drift.
    #[test]
    fn odd_rates_do_not_drift() {
        let schedule = Schedule::at_rate(0, 148_809.0, 60.0);
        let last = schedule.due_ns(schedule.planned().unwrap());
        assert!(last.abs_diff(60_000 * MS) < 10, "{last}");
    }

    /// After a stall the schedule is caught up, but never faster than 1.1 times the rate.
    #[test]
    fn catching_up_makes_no_burst() {
        let departures = run(
            Schedule::at_rate(0, 50_000.0, 0.2),
            200 * MS,
            500,
            50 * MS..55 * MS,
        );
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

    /// Nothing leaves before the start, and a burst leaves at once and stops.
    #[test]
    fn burst_stops_at_its_length() {
        let mut schedule = Schedule::burst(1_000, 100);
        assert_eq!(schedule.take(999, 64), 0);
        assert_eq!(schedule.take(1_000, 64), 64);
        assert_eq!(schedule.take(1_001, 64), 36);
        assert!(schedule.finished());
        assert_eq!(schedule.take(1_002, 64), 0);
    }
}
