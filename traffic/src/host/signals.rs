// SPDX-License-Identifier: Apache-2.0
//! Signals: SIGINT and SIGTERM ask the program to end in an orderly way, SIGUSR1 interrupts a system call.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_signal: libc::c_int) {
    ASKED.store(true, Ordering::Relaxed);
}

/// Installs handlers by which SIGINT and SIGTERM are noted and do not end the process.
pub fn install() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let handler = note as extern "C" fn(libc::c_int);
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
}

extern "C" fn ignore(_signal: libc::c_int) {}

/// Installs a handler by which SIGUSR1 interrupts the system call of a thread (EINTR), and does nothing else.
pub fn wake_on_user_signal() {
    // SAFETY: an all-zero sigaction is valid, and the handler does nothing. Without SA_RESTART system calls are not
    // restarted.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let handler = ignore as extern "C" fn(libc::c_int);
        action.sa_sigaction = handler as libc::sighandler_t;
        libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
    }
}

/// Returns whether SIGINT or SIGTERM has arrived.
pub fn asked_to_end() -> bool {
    ASKED.load(Ordering::Relaxed)
}
