// SPDX-License-Identifier: Apache-2.0
//! How a sender waits for its next frame: asleep as long as timers allow, awake for the rest.
//!
//! In virtual machines, nested guests and kernels of HZ=100 a sleeper wakes milliseconds late. Frames that each
//! wait for such a timer leave at a fraction of their rate, and what is late never catches up. So the time before
//! a frame that is spent awake follows what was overslept.

use crate::clock::Clock;

/// The last of a wait that is always spent awake: good timers are late by tens of µs.
const LEAST_NS: f64 = 50_000.0;
/// A tick of HZ=100 and some more.
const MOST_NS: f64 = 12_000_000.0;
/// Awake for so much longer than was overslept.
const MARGIN: f64 = 1.25;
/// In so long a time half of what was learnt is forgotten, as long as frames leave on time.
const HALVED_NS: f64 = 500_000_000.0;
/// Others on this CPU, such as a DUT, get their turn so often.
const YIELD_NS: u64 = 1_000_000;
/// A sleeper looks so often whether it is to stop.
const LONGEST_NS: u64 = 50_000_000;
const NAPS: usize = 3;
const NAP_NS: u64 = 1_000_000;

pub struct Waking {
    awake_ns: f64,
    overslept_ns: u64,
    decided_ns: u64,
    /// The frame that was waited for when others last got their turn, and when that was.
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
    /// Learns how late timers are while there is time before the first frame.
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

    /// Waits for `next_ns`, or for a part of that time. `behind`: frames are late already.
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
        // Twice in a row is the timers' way; once is a pause of the host.
        let seen_ns = overslept_ns.min(self.overslept_ns) as f64;
        self.overslept_ns = overslept_ns;
        self.awake_ns = self.awake_ns.max((MARGIN * seen_ns).min(MOST_NS));
    }
}
