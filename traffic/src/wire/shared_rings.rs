// SPDX-License-Identifier: Apache-2.0
//! The memory that AF_XDP shares with the kernel: the frames, and the rings by which they are handed over.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::failure::{Failure, Outcome};

/// Size of a frame's place in the shared memory, bytes.
pub const CHUNK: usize = 4096;
/// Number of frames of each half, and of entries of each ring.
pub const FRAMES: usize = 4096;
/// Size of the memory of both halves, bytes.
pub const BYTES: usize = 2 * FRAMES * CHUNK;

/// A ring of AF_XDP. This process is either its producer or its consumer, and the kernel is the other one.
pub struct Ring<T> {
    memory: *mut u8,
    length: usize,
    producer: *const AtomicU32,
    consumer: *const AtomicU32,
    entries: *mut T,
    /// Number of entries that this side has produced or consumed.
    at: u32,
}

// SAFETY: the pointers lead into this ring's own mapping, which does not depend on the thread.
unsafe impl<T> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// Maps a ring of FRAMES entries, whose size was set before.
    pub fn map(fd: i32, page_offset: i64, offsets: &libc::xdp_ring_offset) -> Outcome<Self> {
        let length = offsets.desc as usize + FRAMES * size_of::<T>();
        // SAFETY: mmap with a null address replaces no other mapping; the result is checked.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                fd,
                page_offset,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(Failure::last_os("mapping a ring of AF_XDP"));
        }
        let memory: *mut u8 = memory.cast();
        // SAFETY: the offsets come from the kernel; they are aligned and, with all entries, within `length`.
        unsafe {
            Ok(Ring {
                memory,
                length,
                producer: memory.add(offsets.producer as usize).cast(),
                consumer: memory.add(offsets.consumer as usize).cast(),
                entries: memory.add(offsets.desc as usize).cast(),
                at: 0,
            })
        }
    }

    /// Returns how many entries can be produced now.
    pub fn room(&self) -> usize {
        // SAFETY: `consumer` points into the mapping, which lives as long as `self`.
        let consumed = unsafe { (*self.consumer).load(Ordering::Acquire) };
        FRAMES - self.at.wrapping_sub(consumed) as usize
    }

    /// Writes entries for the kernel. The caller must not give more than `room` returns.
    pub fn produce(&mut self, entries: impl Iterator<Item = T>) {
        for entry in entries {
            // SAFETY: the index is below FRAMES, so within the ring; the kernel does not read entries before `producer`
            // says so.
            unsafe { self.entries.add(self.at as usize % FRAMES).write(entry) };
            self.at = self.at.wrapping_add(1);
        }
        // SAFETY: `producer` points into the mapping, which lives as long as `self`.
        unsafe { (*self.producer).store(self.at, Ordering::Release) };
    }

    /// Returns how many entries the kernel has produced.
    pub fn ready(&self) -> usize {
        // SAFETY: `producer` points into the mapping, which lives as long as `self`.
        let produced = unsafe { (*self.producer).load(Ordering::Acquire) };
        produced.wrapping_sub(self.at) as usize
    }

    /// Takes at most `most` entries that the kernel has produced; returns their number.
    pub fn consume(&mut self, most: usize, mut each: impl FnMut(T)) -> usize {
        let there = self.ready().min(most);
        for _ in 0..there {
            // SAFETY: the index is below FRAMES, and the kernel has written this entry (`ready` has read `producer` with
            // acquire).
            each(unsafe { self.entries.add(self.at as usize % FRAMES).read() });
            self.at = self.at.wrapping_add(1);
        }
        if there > 0 {
            // SAFETY: `consumer` points into the mapping, which lives as long as `self`.
            unsafe { (*self.consumer).store(self.at, Ordering::Release) };
        }
        there
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: `map` made the mapping with this length, and nobody uses it afterwards.
        unsafe { libc::munmap(self.memory.cast(), self.length) };
    }
}

/// The memory of the frames. The lower half is for receiving, and the upper half for sending.
pub struct Memory {
    pub base: *mut u8,
}

// SAFETY: each frame belongs to one half or to the kernel at a time, as the rings say.
unsafe impl Send for Memory {}
// SAFETY: the same holds for two threads.
unsafe impl Sync for Memory {}

impl Memory {
    pub fn new() -> Outcome<Self> {
        // SAFETY: mmap with a null address replaces no other mapping; the result is checked.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(Failure::last_os("memory for AF_XDP"));
        }
        Ok(Memory { base: base.cast() })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `new` made the mapping with this length, and no half of the port is left that could use it. The
        // kernel has pinned its pages, should the socket still be open.
        unsafe { libc::munmap(self.base.cast(), BYTES) };
    }
}
