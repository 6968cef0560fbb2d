// SPDX-License-Identifier: Apache-2.0
//! The speed of a CPU while a trial runs: how often per millisecond it can do a fixed piece of work.
//!
//! Steal does not show that another program runs on the same core (a hardware thread of the host), nor that the clock
//! is lower. Both make a gateway slower, and its figure lower.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::{Mutex, PoisonError};

use crate::host::clock::monotonic_ns;
use crate::protocol::CpuSpeed;

/// Rounds of one piece of work: about 10 µs.
const ROUNDS: u64 = 2_500;
const LANES: usize = 8;

/// The highest speed of each CPU in the life of this process. A CPU is not slowed all the time, so after a few trials
/// this is its full speed.
static FASTEST_PER_MS: Mutex<BTreeMap<usize, f64>> = Mutex::new(BTreeMap::new());

/// The speed of one CPU during a trial.
#[derive(Debug, Default)]
pub struct Speed {
    sum_per_ms: f64,
    fastest_per_ms: f64,
    samples: u64,
}

impl Speed {
    /// Does the work once and notes how long it took. An interrupt in it makes one sample slow, which hardly moves the
    /// mean of speeds (it would move a mean of times).
    pub fn sample(&mut self) {
        let began = monotonic_ns();
        black_box(work(black_box(began)));
        self.add(monotonic_ns().saturating_sub(began).max(1));
    }

    fn add(&mut self, took_ns: u64) {
        let per_ms = 1e6 / took_ns as f64;
        self.sum_per_ms += per_ms;
        self.fastest_per_ms = self.fastest_per_ms.max(per_ms);
        self.samples += 1;
    }

    /// Returns the mean number of pieces of work per millisecond, and the highest one of CPU `cpu` so far in this
    /// process; None without a sample.
    pub fn of(&self, cpu: usize) -> Option<CpuSpeed> {
        if self.samples == 0 {
            return None;
        }
        let mut of_all = FASTEST_PER_MS.lock().unwrap_or_else(PoisonError::into_inner);
        let fastest = of_all.entry(cpu).or_default();
        *fastest = fastest.max(self.fastest_per_ms);
        Some(CpuSpeed {
            mean_per_ms: self.sum_per_ms / self.samples as f64,
            fastest_per_ms: *fastest,
        })
    }
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

    #[test]
    fn a_mean_of_speeds_and_the_fastest_so_far() {
        let (a_cpu, another) = (10_001, 10_002); // no CPUs of this machine
        let mut first = Speed::default();
        assert!(first.of(a_cpu).is_none());
        first.add(10_000);
        first.add(20_000);
        let mut second = Speed::default();
        second.add(25_000);

        let told = [first.of(a_cpu), second.of(a_cpu), second.of(another)];

        let told = told.map(|speed| speed.map(|speed| (speed.mean_per_ms, speed.fastest_per_ms)));
        assert_eq!(
            told,
            [Some((75.0, 100.0)), Some((40.0, 100.0)), Some((40.0, 40.0))]
        );
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
