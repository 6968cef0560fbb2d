// SPDX-License-Identifier: Apache-2.0
//! A failure: what went wrong, and what the user can do about it.

use std::fmt;

/// A failure as the user sees it: `message` says what happened, and `hint` what to do; the hint may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub message: String,
    pub hint: String,
}

pub type Outcome<T> = Result<T, Failure>;

impl Failure {
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Failure {
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// Makes the failure of a system call that failed while doing `what` (uses errno).
    pub fn last_os(what: impl fmt::Display) -> Self {
        Failure::io(what, &std::io::Error::last_os_error())
    }

    /// Makes the failure of a system error that occurred while doing `what`; some errors have a hint.
    pub fn io(what: impl fmt::Display, error: &std::io::Error) -> Self {
        let hint = match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                "run as root, or give the process CAP_NET_RAW, CAP_NET_ADMIN and CAP_SYS_ADMIN"
            }
            Some(libc::ENODEV | libc::ENXIO) => "the interface is gone; look at `ip link` in its namespace",
            Some(libc::ENETDOWN) => "the interface is down; bring it up with `ip link set … up`",
            Some(libc::ENOMEM) => "free some memory, or ask for a smaller rx_ring_mib",
            _ => "",
        };
        Failure::new(format!("{what}: {error}"), hint)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        if !self.hint.is_empty() {
            write!(f, " ({})", self.hint)?;
        }
        Ok(())
    }
}
