// SPDX-License-Identifier: Apache-2.0
//! BPF objects: loads them with aya, and maps their array maps into memory.

use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use aya::maps::{Map, MapData};
use aya::programs::{ProgramError, Xdp};
use aya::{Ebpf, EbpfLoader};

use crate::failure::{Failure, Outcome};
use crate::xdp::layout::Plain;

pub static SEND: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/send.bpf.o"));
pub static REDIRECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/redirect.bpf.o"));
pub static RECEIVE: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/receive.bpf.o"));

const BPF_PROG_TEST_RUN: libc::c_long = 10;
const BPF_F_TEST_XDP_LIVE_FRAMES: u32 = 2;

/// Loads an object. `entries` replaces the sizes of maps in the source, and `globals` the values of its constants.
pub fn load(bytes: &[u8], entries: &[(&'static str, u32)], globals: &[(&'static str, u32)]) -> Outcome<Ebpf> {
    let mut loader = EbpfLoader::new();
    for &(name, count) in entries {
        loader.set_max_entries(name, count);
    }
    for (name, value) in globals {
        loader.set_global(name, value, true);
    }
    loader.load(bytes).map_err(|error| refused("loading", &error))
}

/// Largest number of attempts to load a program. The kernel gives up with EAGAIN if a signal arrives while it verifies
/// it.
const LOADS: usize = 10;

/// Loads a program into the kernel, which verifies it.
pub fn load_program(program: &mut Xdp) -> Outcome<()> {
    for _ in 1..LOADS {
        match program.load() {
            Err(ProgramError::LoadError { io_error, .. })
                if io_error.raw_os_error() == Some(libc::EAGAIN) => {}
            Err(error) => return Err(refused("loading", &error)),
            Ok(()) => return Ok(()),
        }
    }
    program.load().map_err(|error| refused("loading", &error))
}

/// Makes the failure for an error of aya; the message contains the error's causes.
pub fn refused(what: &str, error: &(dyn std::error::Error + 'static)) -> Failure {
    let mut text = format!("{what} an XDP program: {error}");
    let mut memory = is_memory(error);
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        memory |= is_memory(error);
        cause = error.source();
    }
    let hint = if memory {
        "the kernel has no memory for it: make the trial shorter or slower, or write \"af_packet\" as the port's tx and rx"
    } else {
        "a kernel of 5.18 or later as root is needed, or \"af_packet\" as the port's tx and rx"
    };
    Failure::new(text, hint)
}

/// Returns whether this error, without its causes, is the kernel's lack of memory.
fn is_memory(error: &(dyn std::error::Error + 'static)) -> bool {
    let of_kernel = error.downcast_ref::<std::io::Error>();
    of_kernel.is_some_and(|error| error.raw_os_error() == Some(libc::ENOMEM))
}

/// An array map, as memory that is shared with the kernel.
pub struct Mapped<T> {
    base: *mut u8,
    bytes: usize,
    entries: usize,
    kind: PhantomData<T>,
}

// SAFETY: the mapping belongs to this value and lives as long as the value. XDP programs write to it at any time, so no
// references into it exist: values are copied in and out, or accessed by raw pointers.
unsafe impl<T> Send for Mapped<T> {}
// SAFETY: the same holds for several threads.
unsafe impl<T> Sync for Mapped<T> {}

impl<T: Plain> Mapped<T> {
    const STRIDE: usize = size_of::<T>().next_multiple_of(8);

    pub fn of(object: &Ebpf, name: &str) -> Outcome<Self> {
        let wrong = |what: String| Failure::new(format!("map {name}: {what}"), "report this");
        let Some(Map::Array(map)) = object.map(name) else {
            return Err(wrong("not there".into()));
        };
        let info = map.info().map_err(|error| refused("reading", &error))?;
        if info.value_size() as usize != size_of::<T>() {
            return Err(wrong(format!(
                "values of {} bytes, expected {}",
                info.value_size(),
                size_of::<T>()
            )));
        }
        let entries = info.max_entries() as usize;
        let bytes = (entries * Self::STRIDE).next_multiple_of(4096);
        let base = map_memory(map, bytes)?;
        Ok(Mapped {
            base,
            bytes,
            entries,
            kind: PhantomData,
        })
    }

    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Sets these entries to zero.
    pub fn clear(&self, entries: std::ops::Range<usize>) {
        if entries.is_empty() {
            return;
        }
        let first: *mut u8 = self.at(entries.start).cast();
        let _ = self.at(entries.end - 1);
        // SAFETY: `at` has checked that the first and the last of these entries, and so all, are within the mapping.
        unsafe { first.write_bytes(0, entries.len() * Self::STRIDE) };
    }

    /// Returns a pointer to an entry. Panics if there is no such entry.
    pub fn at(&self, index: usize) -> *mut T {
        assert!(index < self.entries, "entry {index} of {}", self.entries);
        // SAFETY: within the mapping, as just checked; entries are aligned to 8 bytes.
        unsafe { self.base.add(index * Self::STRIDE).cast() }
    }

    pub fn read(&self, index: usize) -> T {
        // SAFETY: `at` returns a valid, aligned entry, and T may hold any bytes.
        unsafe { self.at(index).read_volatile() }
    }

    pub fn write(&self, index: usize, value: T) {
        // SAFETY: `at` returns a valid, aligned entry.
        unsafe { self.at(index).write_volatile(value) }
    }
}

impl<T> Drop for Mapped<T> {
    fn drop(&mut self) {
        // SAFETY: mapped in `of` with this length, and not used afterwards.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

fn map_memory(map: &MapData, bytes: usize) -> Outcome<*mut u8> {
    // SAFETY: mmap with a null address replaces no other mapping; the result is checked.
    let base = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            map.fd().as_fd().as_raw_fd(),
            0,
        )
    };
    if base == libc::MAP_FAILED {
        return Err(Failure::last_os("mapping a BPF map"));
    }
    Ok(base.cast())
}

/// The part of `union bpf_attr` for BPF_PROG_TEST_RUN (linux/bpf.h).
#[repr(C)]
#[derive(Default)]
struct TestRun {
    prog_fd: u32,
    retval: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    ctx_size_in: u32,
    ctx_size_out: u32,
    ctx_in: u64,
    ctx_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    unused: u32,
}

/// Runs a program repeatedly on live frames of the length of `frame`, until a signal interrupts it. Fails then with
/// EINTR.
///
/// Uses the calling thread's network namespace. The frames of a batch leave together when the program has run for all.
pub fn run_live(program: RawFd, frame: &[u8], batch: u32) -> std::io::Result<()> {
    let attributes = TestRun {
        prog_fd: program as u32,
        data_size_in: frame.len() as u32,
        data_in: frame.as_ptr() as u64,
        repeat: u32::MAX,
        flags: BPF_F_TEST_XDP_LIVE_FRAMES,
        batch_size: batch,
        ..TestRun::default()
    };
    // SAFETY: the attributes and the frame are valid for the call; the kernel only reads them.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_PROG_TEST_RUN,
            &raw const attributes,
            size_of::<TestRun>(),
        )
    };
    if result < 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lack of memory, wherever in the causes it is, is not taken for a kernel that is too old.
    #[test]
    fn a_lack_of_memory_is_told_as_such() {
        for (errno, words) in [(libc::ENOMEM, "no memory"), (libc::EPERM, "5.18")] {
            let error = aya::EbpfError::MapError(aya::maps::MapError::CreateError {
                name: "arrived".into(),
                code: -1,
                io_error: std::io::Error::from_raw_os_error(errno),
            });
            assert!(refused("loading", &error).hint.contains(words), "{error}");
        }
    }
}
