// SPDX-License-Identifier: Apache-2.0
//! Clocks: everything is measured and reported in CLOCK_MONOTONIC nanoseconds.

/// Reads a POSIX clock, ns.
fn read(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a valid timespec; the clocks asked for always exist.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Reads CLOCK_MONOTONIC, ns.
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// The clock of a sender; tests have their own implementation.
pub trait Clock {
    fn now_ns(&self) -> u64;
    /// Sleeps until `at_ns`. It may return later, because timers are late, or earlier, because of a signal.
    fn sleep_until(&self, at_ns: u64);
    /// Lets other threads have the CPU, if any are waiting for it.
    fn yield_now(&self) {}
    fn spin(&self) {}
}

/// The clock CLOCK_MONOTONIC.
pub struct Monotonic;

impl Clock for Monotonic {
    fn now_ns(&self) -> u64 {
        monotonic_ns()
    }

    fn sleep_until(&self, at_ns: u64) {
        sleep_until(at_ns);
    }

    fn yield_now(&self) {
        std::thread::yield_now();
    }

    fn spin(&self) {
        std::hint::spin_loop();
    }
}

/// Reads CLOCK_REALTIME minus CLOCK_MONOTONIC, ns. Of several readings, the one that took the shortest time counts.
///
/// The kernel stamps received frames in CLOCK_REALTIME. Slewing (NTP) changes both clocks in the same way, so the
/// difference changes only when the wall clock is stepped.
pub fn realtime_offset_ns() -> i64 {
    let mut best = (u64::MAX, 0i64);
    for _ in 0..8 {
        let before = monotonic_ns();
        let wall = read(libc::CLOCK_REALTIME);
        let after = monotonic_ns();
        let width = after - before;
        if width < best.0 {
            best = (width, wall as i64 - (before + width / 2) as i64);
        }
    }
    best.1
}

/// Watches for a step of the wall clock. A difference below the threshold is the noise of reading two clocks.
pub struct StepWatch {
    offset_ns: i64,
    largest_ns: i64,
}

const STEP_THRESHOLD_NS: i64 = 20_000;

impl StepWatch {
    pub fn start() -> Self {
        StepWatch {
            offset_ns: realtime_offset_ns(),
            largest_ns: 0,
        }
    }

    pub fn sample(&mut self) {
        let moved = realtime_offset_ns() - self.offset_ns;
        if moved.abs() > STEP_THRESHOLD_NS && moved.abs() > self.largest_ns.abs() {
            self.largest_ns = moved;
        }
    }

    /// Returns the largest step that was seen, with its sign, ns; 0 if there was none.
    pub fn step_ns(&self) -> i64 {
        self.largest_ns
    }
}

/// Sleeps until a time of CLOCK_MONOTONIC. A signal ends the sleep early, so callers loop.
pub fn sleep_until(at_ns: u64) {
    let until = libc::timespec {
        tv_sec: (at_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (at_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `until` is a valid timespec; the null pointer is allowed and asks for no remainder.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &until,
            std::ptr::null_mut(),
        )
    };
}
