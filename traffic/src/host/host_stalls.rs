// SPDX-License-Identifier: Apache-2.0
//! Stalls of the host: one thread for each CPU wakes every millisecond, and notes when it woke too late. It also
//! measures the speed of its CPU.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::host::clock::{monotonic_ns, sleep_until};
use crate::host::cpu_speed::Speed;
use crate::host::threads;
use crate::protocol::HostStall;

const PERIOD_NS: u64 = 1_000_000;
const LATE_NS: u64 = 500_000;
/// Shortest stall that is listed. A DUT in softirq may cause shorter ones, which are only added to the sum.
const LISTED_NS: u64 = 2_000_000;
const LISTED: usize = 1000;
/// Number of periods from one sample of the speed to the next: the samples take about 0.1 % of a CPU.
const SPEED_PERIODS: u64 = 10;

/// The stalls of one CPU.
#[derive(Debug, Default)]
pub struct Stalls {
    pub listed: Vec<HostStall>,
    pub more: u64,
    /// Sum of the lengths of the stalls that are long enough for the list, but not in it.
    pub more_ms: f64,
    pub total_ms: f64,
    pub speed: Speed,
    /// True if the watcher was on its CPU with a priority above every ordinary thread, so that these are stalls of the
    /// host.
    pub watched: bool,
    pub notes: Vec<String>,
}

/// Watches one CPU from the calling thread until `stop`.
///
/// With SCHED_FIFO 1 the watcher runs before every ordinary thread, so it only sees delays that the host causes (steal,
/// interrupts). Without the right to use SCHED_FIFO it also sees its own waits for other threads, and a note says so.
///
/// speed_until: until this it also measures the speed of the CPU; None: never.
pub fn watch(cpu: usize, speed_until: Option<&AtomicBool>, stop: &AtomicBool) -> Stalls {
    let mut stalls = Stalls::default();
    if let Err(error) = threads::pin(cpu) {
        stalls
            .notes
            .push(format!("CPU {cpu} cannot be watched for stalls: {error}"));
        return stalls;
    }
    threads::no_timer_slack();
    stalls.watched = threads::real_time(1);
    if !stalls.watched {
        stalls.notes.push(format!(
            "CPU {cpu} is watched without SCHED_FIFO: host stalls include waiting for other threads"
        ));
    }
    let mut due = monotonic_ns() + PERIOD_NS;
    let mut until_speed = SPEED_PERIODS;
    while !stop.load(Ordering::Relaxed) {
        sleep_until(due);
        let now = monotonic_ns();
        if now < due {
            continue; // a signal woke us
        }
        let late = now - due;
        if late > LATE_NS {
            let ms = late as f64 / 1e6;
            stalls.total_ms += ms;
            if late >= LISTED_NS && stalls.listed.len() < LISTED {
                stalls.listed.push(HostStall { cpu, at_ns: due, ms });
            } else if late >= LISTED_NS {
                stalls.more += 1;
                stalls.more_ms += ms;
            }
            due = now;
        }
        until_speed -= 1;
        if until_speed == 0 {
            until_speed = SPEED_PERIODS;
            if speed_until.is_some_and(|over| !over.load(Ordering::Relaxed)) {
                stalls.speed.sample();
            }
        }
        due += PERIOD_NS;
    }
    stalls
}
