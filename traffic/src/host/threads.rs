// SPDX-License-Identifier: Apache-2.0
//! Threads: CPU, timers and scheduling of the calling one, and an account of the CPU time of each kind.

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

/// Pins the calling thread, a `sender` or a `receiver`, if a CPU is given. Returns a note if that fails.
pub fn pin_if_asked(kind: &str, cpu: Option<usize>) -> Vec<String> {
    let failed = |cpu| {
        let error = pin(cpu).err()?;
        Some(format!("{kind} not pinned to CPU {cpu}: {error}"))
    };
    cpu.and_then(failed).into_iter().collect()
}

/// Lets the calling thread's timers fire when they are due (the default slack is 50 µs).
pub fn no_timer_slack() {
    // SAFETY: plain prctl without pointers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
}

/// Environment variable by which benchmarks let the timers of senders fire so much later, ns.
const SLACK_VARIABLE: &str = "ESPBENCH_TRAFFIC_TIMER_SLACK_NS";

/// Does the same as `no_timer_slack`, unless a benchmark wants to know what coarse timers do.
pub fn senders_timer_slack() {
    no_timer_slack();
    let wanted = std::env::var(SLACK_VARIABLE).ok();
    if let Some(slack_ns) = wanted.and_then(|text| text.parse::<libc::c_ulong>().ok()) {
        // SAFETY: plain prctl without pointers.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns, 0, 0, 0) };
    }
}

/// Puts the calling thread under SCHED_FIFO; returns false if the system refuses.
pub fn real_time(priority: i32) -> bool {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: `parameters` is valid for the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) == 0 }
}

/// The time that the threads of one kind have run, and have waited for a CPU while they could have run, ns.
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

    /// Books the calling thread, which is about to end (proc(5), schedstat).
    pub fn book(&self) {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let mut fields = text.split_whitespace().map_while(|field| field.parse().ok());
        self.run_ns
            .fetch_add(fields.next().unwrap_or(0), Ordering::Relaxed);
        self.wait_ns
            .fetch_add(fields.next().unwrap_or(0), Ordering::Relaxed);
    }

    /// Returns what was booked since the last call: (ran, waited), ms.
    pub fn take_ms(&self) -> (f64, f64) {
        let ms = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed) as f64 / 1e6;
        (ms(&self.run_ns), ms(&self.wait_ns))
    }
}

/// Asks to be killed when the thread that started this process ends.
///
/// Linux ties it to the parent's *thread*: start the generator from a thread that lives as long as it.
pub fn die_with_parent() {
    // SAFETY: plain prctl without pointers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong, 0, 0, 0) };
}
