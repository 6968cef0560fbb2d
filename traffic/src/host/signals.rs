// SPDX-License-Identifier: Apache-2.0
//! Signals: SIGINT and SIGTERM ask the program to end in good order, SIGUSR1 ends a system call.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_signal: libc::c_int) {
    ASKED.store(true, Ordering::Relaxed);
}

/// Lets SIGINT and SIGTERM be noted instead of ending the process.
pub fn install() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let handler = note as extern "C" fn(libc::c_int);
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
}

extern "C" fn ignore(_signal: libc::c_int) {}

/// Lets SIGUSR1 end the system call that a thread is in, and do nothing else.
pub fn wake_on_user_signal() {
    // SAFETY: an all-zero sigaction is valid; the handler does nothing, and without SA_RESTART calls end.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let handler = ignore as extern "C" fn(libc::c_int);
        action.sa_sigaction = handler as libc::sighandler_t;
        libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
    }
}

/// Returns whether SIGINT or SIGTERM has come.
pub fn asked_to_end() -> bool {
    ASKED.load(Ordering::Relaxed)
}
