// SPDX-License-Identifier: Apache-2.0
//! Threads: CPU, timer slack and scheduling of the calling thread, and the CPU time that senders and receivers used.

use std::sync::atomic::{AtomicU64, Ordering};

/// Pins the calling thread to one CPU.
pub fn pin(cpu: usize) -> std::io::Result<()> {
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(std::io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: an all-zero cpu_set_t is valid, and `cpu` is within it.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    if result == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}

/// Pins the calling thread, whose `kind` is `sender` or `receiver`, if a CPU is given. Returns a note if that fails.
pub fn pin_if_asked(kind: &str, cpu: Option<usize>) -> Vec<String> {
    let failed = |cpu| {
        let error = pin(cpu).err()?;
        Some(format!("{kind} not pinned to CPU {cpu}: {error}"))
    };
    cpu.and_then(failed).into_iter().collect()
}

/// Sets the timer slack of the calling thread to 1 ns (the default is 50 µs).
pub fn no_timer_slack() {
    // SAFETY: plain prctl without pointers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
}

/// Environment variable by which benchmarks set the timer slack of senders, ns.
const SLACK_VARIABLE: &str = "ESPBENCH_TRAFFIC_TIMER_SLACK_NS";

/// Does the same as `no_timer_slack`, unless a benchmark sets another timer slack to measure its effect.
pub fn senders_timer_slack() {
    no_timer_slack();
    let wanted = std::env::var(SLACK_VARIABLE).ok();
    if let Some(slack_ns) = wanted.and_then(|text| text.parse::<libc::c_ulong>().ok()) {
        // SAFETY: plain prctl without pointers.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns, 0, 0, 0) };
    }
}

/// Schedules the calling thread by SCHED_FIFO with this priority; returns false if the system refuses it.
pub fn real_time(priority: i32) -> bool {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: `parameters` is valid for the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) == 0 }
}

/// The CPU time that the threads of one kind have used, and the time that they waited for a CPU while runnable, ns.
#[derive(Debug)]
pub struct Account {
    run_ns: AtomicU64,
    wait_ns: AtomicU64,
}

pub static SENDERS: Account = Account::new();
pub static RECEIVERS: Account = Account::new();

impl Account {
    const fn new() -> Self {
        Account {
            run_ns: AtomicU64::new(0),
            wait_ns: AtomicU64::new(0),
        }
    }

    /// Adds the times of the calling thread, which is about to end (/proc/thread-self/schedstat, proc(5)).
    pub fn book(&self) {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let mut fields = text.split_whitespace().map_while(|field| field.parse().ok());
        self.run_ns
            .fetch_add(fields.next().unwrap_or(0), Ordering::Relaxed);
        self.wait_ns
            .fetch_add(fields.next().unwrap_or(0), Ordering::Relaxed);
    }

    /// Returns the times that were added since the last call: (ran, waited), ms.
    pub fn take_ms(&self) -> (f64, f64) {
        let ms = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed) as f64 / 1e6;
        (ms(&self.run_ns), ms(&self.wait_ns))
    }
}

/// Asks the kernel to kill this process when the thread that started it ends.
///
/// Linux sends the signal when that *thread* ends, not the parent process. So a thread that starts the generator must
/// live as long as the generator.
pub fn die_with_parent() {
    // SAFETY: plain prctl without pointers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong, 0, 0, 0) };
}
