// SPDX-License-Identifier: Apache-2.0
//! Network namespaces: a thread enters one by its path, and recognises the machine's initial one.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::linux::fs::MetadataExt;
use std::path::Path;

use crate::failure::{Failure, Outcome};

/// The network namespace of a port. Its file is kept open, so that it stays reachable when its path is removed.
pub struct Netns {
    file: File,
    name: String,
}

impl Netns {
    /// Opens a namespace by a path such as /proc/12/ns/net or /run/netns/t1; None opens the generator's own.
    pub fn open(path: Option<&str>) -> Outcome<Self> {
        let name = path.unwrap_or("/proc/self/ns/net");
        let file = File::open(name).map_err(|error| {
            let mut failure = Failure::io(format!("network namespace {name}"), &error);
            if failure.hint.is_empty() {
                failure.hint =
                    "give the path of a namespace that exists, such as /run/netns/NAME or /proc/PID/ns/net"
                        .into();
            }
            failure
        })?;
        Ok(Netns {
            file,
            name: path.unwrap_or("the generator's own").into(),
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether this is the machine's initial namespace: that of process 1 or, if that may not be read, the one
    /// in which the generator runs.
    pub fn is_initial(&self) -> bool {
        let inode = |path: &str| {
            Path::new(path)
                .metadata()
                .ok()
                .map(|meta| (meta.st_dev(), meta.st_ino()))
        };
        let mine = self
            .file
            .metadata()
            .ok()
            .map(|meta| (meta.st_dev(), meta.st_ino()));
        mine.is_none() || mine == inode("/proc/1/ns/net").or_else(|| inode("/proc/self/ns/net"))
    }

    /// Runs `work` in a new thread inside the namespace. Sockets that it opens stay in the namespace.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> Outcome<T> + Send) -> Outcome<T> {
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                // SAFETY: the descriptor is open for as long as `self`; setns moves only this thread.
                if unsafe { libc::setns(self.file.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
                    return Err(Failure::last_os(format!(
                        "entering network namespace {}",
                        self.name
                    )));
                }
                work()
            });
            inside.join().unwrap_or_else(|_| {
                Err(Failure::new(
                    "the thread that opens a port panicked",
                    "report this",
                ))
            })
        })
    }
}
