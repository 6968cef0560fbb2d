// SPDX-License-Identifier: Apache-2.0
//! The wait of a sender for its next frame: asleep as long as timers allow, awake for the rest.
//!
//! In virtual machines, nested guests and kernels of HZ=100 a sleeper wakes milliseconds late. Frames that each
//! wait for such a timer leave at a fraction of their rate, and never catch up. So the time that is spent awake before
//! a frame follows the time that was overslept.

use crate::host::clock::Clock;

/// Part of a wait that is always spent awake: good timers are late by tens of µs.
const LEAST_NS: f64 = 50_000.0;
/// Longest part that is spent awake: a tick of HZ=100 and some more.
const MOST_NS: f64 = 12_000_000.0;
/// Factor by which the time awake is longer than the time overslept.
const MARGIN: f64 = 1.25;
/// Time in which half of what was learnt is forgotten, as long as frames leave on time.
const HALVED_NS: f64 = 500_000_000.0;
/// Time after which others on this CPU, such as a DUT, get their turn.
const YIELD_NS: u64 = 1_000_000;
/// Longest sleep: then a sleeper looks whether it is to stop.
const LONGEST_NS: u64 = 50_000_000;
const NAPS: usize = 3;
const NAP_NS: u64 = 1_000_000;

/// The memory of a sender for how late its timers are.
pub struct Waking {
    awake_ns: f64,
    overslept_ns: u64,
    decided_ns: u64,
    /// The due time of the frame that was waited for when others last got their turn, and when that was.
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

    /// Waits for `next_ns`, or for a part of that time. `behind` tells whether frames are late already.
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
        // Timers that are late twice in a row are always so; one that is late once saw a pause of the host.
        let seen_ns = overslept_ns.min(self.overslept_ns) as f64;
        self.overslept_ns = overslept_ns;
        self.awake_ns = self.awake_ns.max((MARGIN * seen_ns).min(MOST_NS));
    }
}
