// SPDX-License-Identifier: Apache-2.0
//! The file that the two ends of a link share: its layout and its mapping (harness/emulator/LINK.md).

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::failure::{Failure, Outcome};
use crate::fates::Errors;

const MAGIC: [u8; 8] = *b"ESPLINK1";
const RINGS_AT: usize = 4096;
/// Bytes of the ring of each direction: a burst of 2,700 of the longest frames.
const RING_BYTES: u32 = 4 << 20;
/// Bounds of latency and step: a guest runs some instructions, but not all at once.
const SHORTEST_NS: u64 = 100;
const LONGEST_NS: u64 = 1_000_000_000;

/// The figures that both ends have to agree upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Header {
    magic: [u8; 8],
    /// Time from the last bit's departure to its arrival. One end may be as far ahead of the other.
    pub latency_ns: u64,
    /// Time between two promises of an end. It is longer than the latency where end 0 leads by so long.
    pub step_ns: u64,
    /// Time on the wire of a byte: 8 at 1 Gbps, 80 at 100 Mbps.
    pub ns_per_byte: u32,
    pub ring_bytes: u32,
    /// The number from which the ends draw; 0, as in a new link: nothing goes wrong.
    pub seed: u64,
    pub errors: Errors,
}

/// The words that one end writes for the other.
#[repr(C, align(128))]
pub struct End {
    /// Time before which nothing leaves that this end still sends.
    pub until_ns: AtomicU64,
    /// Number of bytes that this end has put into its ring, ever.
    pub head: AtomicU64,
    _apart: [u64; 6],
    /// Number of bytes that this end has taken from the other's ring, ever.
    pub tail: AtomicU64,
    /// Value of the other's until_ns for which this end sleeps; 0 if it does not.
    pub wants_ns: AtomicU64,
    /// Rung by the other to wake this end (futex).
    pub bell: AtomicU32,
    pub state: AtomicU32,
    pub pid: AtomicU32,
    /// Order of end 0: an odd one asks the other to tell when it stands, an even one to branch. The other repeats odd ones.
    pub order: AtomicU32,
    /// Number of frames of this end's that were lost, damaged, came late.
    pub lost: AtomicU64,
    pub damaged: AtomicU64,
    pub late: AtomicU64,
}

/// Words of what a gateway at an end tells of itself (harness/emulator/qemu/bus.h): bytes that its devices moved.
pub const COUNTS: usize = 7;

/// State of an end at which nobody was yet.
pub const ABSENT: u32 = 0;
pub const ATTACHED: u32 = 1;
/// State of an end that somebody left in order.
pub const LEFT: u32 = 2;

const HEADER_BYTES: usize = size_of::<Header>();
const SEED_AT: u64 = 32;
const BRANCH_AT: u64 = 64;
const BRANCH_BYTES: usize = 64;
const ENDS_AT: usize = 128;
const COUNTS_AT: usize = 512;
const _: () = assert!(HEADER_BYTES == 64 && size_of::<End>() == 128);

/// A mapped link file.
pub struct Memory {
    file: File,
    base: *mut u8,
    length: usize,
    pub header: Header,
}

// SAFETY: the mapping belongs to this value and does not depend on the thread; bytes that others write in it are only
// read as atomics or copied.
unsafe impl Send for Memory {}

fn length_of(ring_bytes: u32) -> usize {
    RINGS_AT + 2 * ring_bytes as usize
}

/// Longest wait for room: guests of a branch that is over, here or in another worker, may hold its links until they end.
const PATIENCE: Duration = Duration::from_secs(5);
const NAP: Duration = Duration::from_millis(10);

/// Reserves room for all of the file, so that no write to its mapping can lack it: that would kill the process (SIGBUS).
fn reserve(file: &File, path: &Path, bytes: u64, patience: Duration) -> Outcome<()> {
    let mut waited = Duration::ZERO;
    loop {
        // SAFETY: the call gets an open file and two numbers.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes as libc::off_t) } {
            0 => return Ok(()),
            libc::EINTR => {}
            libc::ENOSPC if waited < patience => {
                std::thread::sleep(NAP);
                waited += NAP;
            }
            libc::ENOSPC => return Err(no_room(path, bytes, free_bytes(file))),
            error => {
                return Err(Failure::io(
                    format!("room for link {}", path.display()),
                    &std::io::Error::from_raw_os_error(error),
                ));
            }
        }
    }
}

fn no_room(path: &Path, needed: u64, free: u64) -> Failure {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let folder = path.parent().unwrap_or(path);
    Failure::new(
        format!(
            "link {}: no room in {}: {:.1} MB are needed, {:.1} MB are free",
            path.display(),
            folder.display(),
            megabytes(needed),
            megabytes(free)
        ),
        "make that file system larger (a container: --shm-size 1g), or measure fewer cases at once (--jobs 1)",
    )
}

/// Returns how much an ordinary user can still write to the file system of a file.
fn free_bytes(file: &File) -> u64 {
    // SAFETY: all zero is a valid statvfs, which lives through the call.
    let (told, system) = unsafe {
        let mut system: libc::statvfs = std::mem::zeroed();
        (libc::fstatvfs(file.as_raw_fd(), &raw mut system), system)
    };
    if told == 0 {
        system.f_bavail * system.f_frsize
    } else {
        0
    }
}

/// Makes the file of a new link, which must not exist yet.
pub fn create(path: &Path, latency_ns: u64, step_ns: u64, ns_per_byte: u32, errors: Errors) -> Outcome<()> {
    for (name, ns) in [("latency", latency_ns), ("step", step_ns)] {
        if !(SHORTEST_NS..=LONGEST_NS).contains(&ns) {
            return Err(Failure::new(
                format!("a link with a {name} of {ns} ns: expected {SHORTEST_NS} to {LONGEST_NS}"),
                "50000 is a good latency; between two gateways half of it is a good step",
            ));
        }
    }
    let failed = |error| {
        let mut failure = Failure::io(format!("link {}", path.display()), &error);
        failure.hint = "give the path of a file that does not exist yet, best in /dev/shm".into();
        failure
    };
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(failed)?;
    reserve(&file, path, length_of(RING_BYTES) as u64, PATIENCE).inspect_err(|_| {
        let _ = std::fs::remove_file(path);
    })?;
    let header = Header {
        magic: MAGIC,
        latency_ns,
        step_ns,
        ns_per_byte,
        ring_bytes: RING_BYTES,
        seed: 0,
        errors,
    };
    // SAFETY: `header` lives on, and Header is repr(C) without padding (its size is checked above).
    let bytes = unsafe { std::slice::from_raw_parts((&raw const header).cast::<u8>(), HEADER_BYTES) };
    std::os::unix::fs::FileExt::write_all_at(&file, bytes, 0).map_err(failed)
}

fn lock_of(end: usize) -> libc::flock {
    // SAFETY: all zero is a valid flock.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = end as libc::off_t;
    lock.l_len = 1;
    lock
}

impl Memory {
    pub fn open(path: &Path) -> Outcome<Self> {
        let failed = |error: &std::io::Error| {
            let mut failure = Failure::io(format!("link {}", path.display()), error);
            if failure.hint.is_empty() {
                failure.hint = "make it first: espbench-traffic link PATH".into();
            }
            failure
        };
        let wrong = |found: String| {
            Failure::new(
                format!("link {}: {found}", path.display()),
                "make it with `espbench-traffic link PATH` of the same version",
            )
        };
        let file = File::options()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|e| failed(&e))?;
        let mut bytes = [0u8; HEADER_BYTES];
        if std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 0).is_err() {
            return Err(wrong("it is too short to be a link".into()));
        }
        // SAFETY: `bytes` is as long as a Header, and any bytes are one.
        let header: Header = unsafe { bytes.as_ptr().cast::<Header>().read_unaligned() };
        let length = length_of(header.ring_bytes);
        let size = file.metadata().map_err(|e| failed(&e))?.len();
        if header.magic != MAGIC || !header.ring_bytes.is_power_of_two() || size != length as u64 {
            return Err(wrong("it is no link, or one of another version".into()));
        }
        // SAFETY: mmap with a null address replaces no other mapping; the file is as long, and the result is checked.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(Failure::last_os(format!("mapping {}", path.display())));
        }
        Ok(Memory {
            file,
            base: base.cast(),
            length,
            header,
        })
    }

    /// Makes a copy that nobody has come to yet, with a seed of its own; both ends of this one stand.
    pub fn copy(&self, from: &Path, to: &Path, seed: u64) -> Outcome<Self> {
        let failed = |error| {
            Failure::io(
                format!("copying link {} to {}", from.display(), to.display()),
                &error,
            )
        };
        let mut new = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(to)
            .map_err(failed)?;
        reserve(&new, to, self.length as u64, PATIENCE)?;
        // A copy has no name any more: it is opened by its descriptor.
        let here = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        std::io::copy(&mut File::open(here).map_err(failed)?, &mut new).map_err(failed)?;
        std::os::unix::fs::FileExt::write_all_at(&new, &seed.to_ne_bytes(), SEED_AT).map_err(failed)?;
        let copy = Memory::open(to)?;
        for end in [0, 1].map(|end| copy.end(end)) {
            end.order.store(0, Ordering::Relaxed);
            end.state.store(ABSENT, Ordering::Release);
        }
        Ok(copy)
    }

    /// Names the branches made from now on: they add the name, of at most 63 bytes, to the path of each link.
    pub fn name_branch(&self, name: &str) -> Outcome<()> {
        let mut bytes = [0u8; BRANCH_BYTES];
        if name.len() >= BRANCH_BYTES {
            return Err(Failure::new(
                format!("a branch named {name}"),
                "give at most 63 bytes",
            ));
        }
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        std::os::unix::fs::FileExt::write_all_at(&self.file, &bytes, BRANCH_AT)
            .map_err(|error| Failure::io("naming a branch", &error))
    }

    pub fn end(&self, end: usize) -> &End {
        // SAFETY: both ends lie within the mapping, which lives as long as `self`, aligned to 128 bytes. Others write
        // only fields that are atomics.
        unsafe { &*self.base.add(ENDS_AT * (1 + (end & 1))).cast::<End>() }
    }

    /// Returns what the gateway at an end has counted since its boot, as it was at its last promise.
    pub fn counts(&self, end: usize) -> [u64; COUNTS] {
        let word = |at: usize| {
            let offset = COUNTS_AT + 64 * (end & 1) + 8 * at;
            // SAFETY: the words lie within the mapping, which lives as long as `self`, aligned to 8 bytes. The gateway
            // writes them before a promise that is acquired before they are read, and not again before the next.
            unsafe { (*self.base.add(offset).cast::<AtomicU64>()).load(Ordering::Relaxed) }
        };
        std::array::from_fn(word)
    }

    /// Returns the frames that both ends lost, damaged and delayed.
    pub fn errors(&self) -> [u64; 3] {
        let of = |pick: fn(&End) -> &AtomicU64| {
            (0..2)
                .map(|end| pick(self.end(end)).load(Ordering::Acquire))
                .sum()
        };
        [of(|end| &end.lost), of(|end| &end.damaged), of(|end| &end.late)]
    }

    /// Takes this end for as long as the file is open; returns false if another has it.
    pub fn take(&self, end: usize) -> bool {
        let lock = lock_of(end);
        // SAFETY: `lock` lives through the call, which only reads it.
        unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_OFD_SETLK, &lock) == 0 }
    }

    /// Returns whether some process has that end: the lock goes with its process, however that ends.
    pub fn taken(&self, end: usize) -> bool {
        let mut lock = lock_of(end);
        // SAFETY: `lock` lives through the call, which writes the answer to it.
        unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_OFD_GETLK, &mut lock) };
        lock.l_type != libc::F_UNLCK as libc::c_short
    }

    /// Returns the pieces of `length` bytes from `at` on in the ring that `end` fills: two if it wraps.
    fn pieces(&self, end: usize, at: u64, length: usize) -> [(*mut u8, usize); 2] {
        let size = self.header.ring_bytes as usize;
        let from = at as usize & (size - 1);
        let first = length.min(size - from);
        // SAFETY: the ring lies within the mapping. Neither piece leaves it: `from` is below its size, and the record fits
        // because whoever put it waited for room.
        unsafe {
            let ring = self.base.add(RINGS_AT + size * (end & 1));
            [(ring.add(from), first), (ring, length - first)]
        }
    }

    pub fn write(&self, end: usize, at: u64, bytes: &[u8]) {
        let mut done = 0;
        for (to, length) in self.pieces(end, at, bytes.len()) {
            // SAFETY: the piece is within the mapping, and only this end writes to it until it moves its head over it.
            unsafe { std::ptr::copy_nonoverlapping(bytes[done..].as_ptr(), to, length) };
            done += length;
        }
    }

    pub fn read(&self, end: usize, at: u64, bytes: &mut [u8]) {
        let mut done = 0;
        for (from, length) in self.pieces(end, at, bytes.len()) {
            // SAFETY: the piece is within the mapping, and the other end does not touch it until our tail moves over it.
            unsafe { std::ptr::copy_nonoverlapping(from, bytes[done..].as_mut_ptr(), length) };
            done += length;
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `open` made the mapping with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.base.cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn named(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("esplink-{}-{name}", std::process::id()))
    }

    /// A sparse file has no block for what nobody wrote yet; these have all, from the start.
    #[test]
    fn a_link_and_its_copy_have_all_their_room() {
        let (path, copy) = (named("room"), named("room.1"));
        create(&path, 50_000, 25_000, 8, Errors::default()).unwrap();
        Memory::open(&path).unwrap().copy(&path, &copy, 7).unwrap();
        for file in [path, copy] {
            let told = std::fs::metadata(&file).unwrap();
            std::fs::remove_file(&file).unwrap();
            assert_eq!(told.len(), length_of(RING_BYTES) as u64);
            assert!(told.blocks() * 512 >= told.len(), "{} blocks", told.blocks());
        }
    }

    /// A tmpfs refuses at once what is more than all of it.
    #[test]
    fn lack_of_room_names_the_folder_and_both_sizes() {
        let path = Path::new("/dev/shm").join(format!("esplink-{}-large", std::process::id()));
        let file = File::options().write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        // SAFETY: all zero is a valid statvfs, which lives through the call.
        let whole = unsafe {
            let mut system: libc::statvfs = std::mem::zeroed();
            assert_eq!(libc::fstatvfs(file.as_raw_fd(), &raw mut system), 0);
            system.f_blocks * system.f_frsize
        };
        assert!(whole > 0, "/dev/shm has no limit here");
        let failure = reserve(&file, &path, whole + 4096, Duration::ZERO).unwrap_err();
        let start = format!("link {}: no room in /dev/shm: ", path.display());
        assert!(failure.message.starts_with(&start), "{failure}");
        assert!(failure.message.contains("MB are needed, "), "{failure}");
        assert!(failure.hint.contains("--shm-size"), "{failure}");
        let said = no_room(Path::new("/dev/shm/a/west"), 8_392_704, 1_000_000).message;
        assert_eq!(
            said,
            "link /dev/shm/a/west: no room in /dev/shm/a: 8.4 MB are needed, 1.0 MB are free"
        );
    }
}
