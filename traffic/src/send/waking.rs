// SPDX-License-Identifier: Apache-2.0
//! The wait of a sender for its next frame: it sleeps as long as the precision of timers allows, and stays awake for
//! the rest.
//!
//! In virtual machines, nested guests and kernels with HZ=100, a thread wakes milliseconds late. If each frame waited
//! for such a timer, frames would leave at a fraction of their rate and never catch up. So the sender measures how late
//! it wakes, and stays awake for that time before a frame is due.

use crate::host::clock::Clock;

/// Shortest time awake at the end of a wait: even good timers are late by tens of µs.
const LEAST_NS: f64 = 50_000.0;
/// Longest time awake at the end of a wait: a little more than a tick of HZ=100.
const MOST_NS: f64 = 12_000_000.0;
/// Ratio of the time awake to the measured lateness of timers.
const MARGIN: f64 = 1.25;
/// Time in which the time awake falls half of the way to LEAST_NS, as long as frames leave on time.
const HALVED_NS: f64 = 500_000_000.0;
/// Time after which other tasks on this CPU, such as a DUT, get the CPU.
const YIELD_NS: u64 = 1_000_000;
/// Longest sleep: after it, the sender checks whether it is to stop.
const LONGEST_NS: u64 = 50_000_000;
const NAPS: usize = 3;
const NAP_NS: u64 = 1_000_000;

/// The state of a sender's waits: how late its timers are.
pub struct Waking {
    awake_ns: f64,
    overslept_ns: u64,
    decided_ns: u64,
    /// The last time that the CPU was yielded: the due time of the frame that was waited for, and the time itself.
    yielded: (u64, u64),
}

impl Default for Waking {
    fn default() -> Self {
        Waking {
            awake_ns: LEAST_NS,
            overslept_ns: 0,
            decided_ns: 0,
            yielded: (0, 0),
        }
    }
}

impl Waking {
    /// Measures how late timers are, as long as there is time before the first frame.
    pub fn learn(&mut self, clock: &impl Clock, start_ns: u64) {
        self.decided_ns = clock.now_ns();
        for _ in 0..NAPS {
            let until_ns = clock.now_ns() + NAP_NS;
            if until_ns + MOST_NS as u64 > start_ns {
                return;
            }
            self.sleep(clock, until_ns);
        }
    }

    /// Waits until `next_ns`, or for a part of that time; callers loop. `behind` returns whether frames are late
    /// already.
    pub fn wait(&mut self, clock: &impl Clock, next_ns: u64, behind: impl FnOnce(u64) -> bool) {
        let now_ns = clock.now_ns();
        let wait_ns = next_ns.saturating_sub(now_ns);
        if wait_ns as f64 <= LEAST_NS {
            return clock.spin();
        }
        self.forget(now_ns, behind(now_ns));
        if wait_ns as f64 > self.awake_ns {
            let until_ns = next_ns - self.awake_ns as u64;
            self.sleep(clock, until_ns.min(now_ns + LONGEST_NS));
        } else if self.yielded.0 != next_ns || now_ns - self.yielded.1 > YIELD_NS {
            self.yielded = (next_ns, now_ns);
            clock.yield_now();
        } else {
            clock.spin();
        }
    }

    /// Reduces the time awake, unless frames are late.
    fn forget(&mut self, now_ns: u64, behind: bool) {
        let passed_ns = now_ns.saturating_sub(self.decided_ns) as f64;
        self.decided_ns = now_ns;
        if !behind {
            self.awake_ns = LEAST_NS + (self.awake_ns - LEAST_NS) * (-passed_ns / HALVED_NS).exp2();
        }
    }

    fn sleep(&mut self, clock: &impl Clock, until_ns: u64) {
        clock.sleep_until(until_ns);
        let overslept_ns = clock.now_ns().saturating_sub(until_ns);
        // If two timers in a row are late, timers are generally late. If only one is, the host had paused.
        let seen_ns = overslept_ns.min(self.overslept_ns) as f64;
        self.overslept_ns = overslept_ns;
        self.awake_ns = self.awake_ns.max((MARGIN * seen_ns).min(MOST_NS));
    }
}
