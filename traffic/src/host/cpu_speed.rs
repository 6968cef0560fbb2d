// SPDX-License-Identifier: Apache-2.0
//! The speed of a CPU while a trial runs: how often per millisecond it can do a fixed piece of work.
//!
//! Steal does not show that another program runs on the same core (a hardware thread of the host), nor that the clock
//! is lower. Both make a gateway slower, and its figure lower.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::{Mutex, PoisonError};

use crate::host::clock::monotonic_ns;
use crate::protocol::{CpuSpeed, SlowTime};

/// Rounds of one piece of work: about 10 µs.
const ROUNDS: u64 = 2_500;
const LANES: usize = 8;
/// A time is slow if the median of this number of samples in a row is below this share of the trial's upper quartile.
/// Interrupts make single samples slow. The median also decides how fast a CPU can be: the fastest single sample is some
/// per cent faster than a CPU ever is for 50 ms, and the more samples, the faster it is.
const IN_A_ROW: usize = 5;
const SLOW_SHARE: f64 = 0.85;
/// Slow times are looked for in this number of samples (1000 s), so that a trial of a day takes no more memory.
const KEPT: usize = 100_000;

/// The highest speed of each CPU in the life of this process, over IN_A_ROW samples. A CPU is not slowed all the time,
/// so after a few trials this is its full speed.
static FASTEST_PER_MS: Mutex<BTreeMap<usize, f64>> = Mutex::new(BTreeMap::new());

/// The speed of one CPU during a trial.
#[derive(Debug, Default)]
pub struct Speed {
    sum_per_ms: f64,
    /// The highest median of IN_A_ROW samples in a row; 0 before there are as many.
    fastest_per_ms: f64,
    latest: [f64; IN_A_ROW],
    taken: usize,
    kept: Vec<Sample>,
}

/// When a piece of work was begun, and how often per millisecond it can be done at this speed.
#[derive(Debug, Clone, Copy)]
struct Sample {
    at_ns: u64,
    per_ms: f64,
}

impl Speed {
    /// Does the work once and notes how long it took. An interrupt in it makes one sample slow, which hardly moves the
    /// mean of speeds (it would move a mean of times).
    pub fn sample(&mut self) {
        let began = monotonic_ns();
        black_box(work(black_box(began)));
        self.add(began, monotonic_ns().saturating_sub(began));
    }

    fn add(&mut self, at_ns: u64, took_ns: u64) {
        let per_ms = 1e6 / took_ns.max(1) as f64;
        self.sum_per_ms += per_ms;
        self.latest[self.taken % IN_A_ROW] = per_ms;
        self.taken += 1;
        if self.taken >= IN_A_ROW {
            self.fastest_per_ms = self.fastest_per_ms.max(median(self.latest));
        }
        if self.kept.len() < KEPT {
            self.kept.push(Sample { at_ns, per_ms });
        }
    }

    /// Returns the speed of CPU `cpu` in this trial; None without a sample.
    pub fn of(&self, cpu: usize) -> Option<CpuSpeed> {
        if self.taken == 0 {
            return None;
        }
        let mean_per_ms = self.sum_per_ms / self.taken as f64;
        let mut of_all = FASTEST_PER_MS.lock().unwrap_or_else(PoisonError::into_inner);
        let fastest = of_all.entry(cpu).or_default();
        if self.taken >= IN_A_ROW {
            *fastest = fastest.max(self.fastest_per_ms).max(mean_per_ms);
        }
        Some(CpuSpeed {
            mean_per_ms,
            fastest_per_ms: *fastest,
            slow_times: slow_times(&self.kept),
        })
    }
}

/// Returns the times in which a CPU was clearly slower than in most of the trial, rising and apart.
fn slow_times(samples: &[Sample]) -> Vec<SlowTime> {
    let mut speeds: Vec<f64> = samples.iter().map(|sample| sample.per_ms).collect();
    speeds.sort_by(f64::total_cmp);
    let least = SLOW_SHARE * speeds[speeds.len() * 3 / 4];
    let mut times: Vec<SlowTime> = Vec::new();
    for row in samples.windows(IN_A_ROW) {
        if median(std::array::from_fn(|i| row[i].per_ms)) >= least {
            continue;
        }
        // The median is slow, so the row has a slow sample.
        let slow = || row.iter().filter(|sample| sample.per_ms < least);
        let from_ns = slow().next().map_or(row[0].at_ns, |sample| sample.at_ns);
        let to_ns = slow().next_back().map_or(row[0].at_ns, |sample| sample.at_ns);
        match times.last_mut() {
            Some(time) if from_ns <= time.to_ns => time.to_ns = time.to_ns.max(to_ns),
            _ => times.push(SlowTime { from_ns, to_ns }),
        }
    }
    times
}

fn median(mut of_row: [f64; IN_A_ROW]) -> f64 {
    of_row.sort_by(f64::total_cmp);
    of_row[IN_A_ROW / 2]
}

/// Work of many independent additions, shifts and table reads. It needs all of a core's arithmetic units, which
/// hardware threads share: a chain in which each step waits for the one before runs equally fast beside a busy
/// neighbour.
fn work(seed: u64) -> u64 {
    let table: [u64; 64] = std::array::from_fn(|i| seed.rotate_left(i as u32));
    let mut lanes: [u64; LANES] = std::array::from_fn(|lane| seed ^ lane as u64);
    for round in 0..ROUNDS {
        for (lane, value) in lanes.iter_mut().enumerate() {
            *value = (*value ^ (*value >> 3)).wrapping_add(table[(round as usize + lane) % 64]);
        }
        black_box(&mut lanes);
    }
    lanes.iter().fold(0, |sum, lane| sum ^ lane)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds samples that took these times, µs, one every 10 ms from `from_ms`.
    fn add(speed: &mut Speed, from_ms: u64, took_us: &[u64]) {
        for (number, took) in took_us.iter().enumerate() {
            speed.add((from_ms + 10 * number as u64) * 1_000_000, took * 1_000);
        }
    }

    #[test]
    fn a_mean_of_speeds_and_the_fastest_so_far() {
        let (a_cpu, another) = (10_001, 10_002); // no CPUs of this machine
        let mut first = Speed::default();
        assert!(first.of(a_cpu).is_none());
        add(&mut first, 0, &[20, 8, 10, 10, 10, 40]);
        let (mut second, mut third) = (Speed::default(), Speed::default());
        add(&mut second, 0, &[25]);
        add(&mut third, 0, &[50; 5]);

        let told = [
            first.of(a_cpu),
            second.of(a_cpu),
            second.of(another),
            third.of(another),
        ];

        let told = told.map(|speed| speed.map(|speed| (speed.mean_per_ms, speed.fastest_per_ms)));
        assert_eq!(
            told,
            [
                Some((500.0 / 6.0, 100.0)),
                Some((40.0, 100.0)),
                Some((40.0, 0.0)),
                Some((20.0, 20.0))
            ],
            "one sample alone, 125 or 40 per ms, is no speed of the CPU"
        );
    }

    #[test]
    fn a_time_is_slow_if_most_samples_in_a_row_are() {
        let slow_ms = |took_us: &[u64]| {
            let mut speed = Speed::default();
            add(&mut speed, 0, took_us);
            let times = speed.of(10_004).map_or_else(Vec::new, |speed| speed.slow_times);
            let in_ms = |time: &SlowTime| (time.from_ns / 1_000_000, time.to_ns / 1_000_000);
            times.iter().map(in_ms).collect::<Vec<_>>()
        };
        let (fast, slow) = ([10; 30], [13; 5]);

        assert_eq!(slow_ms(&[&fast[..], &slow, &fast].concat()), [(300, 340)]);
        let twice = [&fast[..], &slow, &fast, &slow, &fast].concat();
        assert_eq!(slow_ms(&twice), [(300, 340), (650, 690)]);
        let interrupts = [&fast[..], &[500, 500], &fast, &[500], &fast].concat();
        assert_eq!(slow_ms(&interrupts), []);
        assert_eq!(
            slow_ms(&[&fast[..], &[11; 5], &fast].concat()),
            [],
            "a usual difference"
        );
        assert_eq!(slow_ms(&[13; 30]), [], "the mean tells this");
        assert_eq!(slow_ms(&[10, 13, 13]), [], "too short to know");
    }

    #[test]
    fn the_work_is_done_and_depends_on_its_seed() {
        assert_eq!(work(1), work(1));
        assert_ne!(work(1), work(2));
        let mut speed = Speed::default();
        speed.sample();
        assert!(speed.of(10_003).is_some_and(|speed| speed.mean_per_ms > 0.0));
    }
}
