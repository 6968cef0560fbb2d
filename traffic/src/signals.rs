// SPDX-License-Identifier: Apache-2.0
//! SIGINT and SIGTERM end what is running in good order.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_signal: libc::c_int) {
    ASKED.store(true, Ordering::Relaxed);
}

pub fn install() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let handler = note as extern "C" fn(libc::c_int);
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
}

extern "C" fn ignore(_signal: libc::c_int) {}

/// SIGUSR1 ends the system call that the calling thread is in, and does nothing else.
pub fn wake_on_user_signal() {
    // SAFETY: an all-zero sigaction is valid; the handler does nothing, and without SA_RESTART calls end.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let handler = ignore as extern "C" fn(libc::c_int);
        action.sa_sigaction = handler as libc::sighandler_t;
        libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
    }
}

pub fn asked_to_end() -> bool {
    ASKED.load(Ordering::Relaxed)
}
