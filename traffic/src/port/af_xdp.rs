// SPDX-License-Identifier: Apache-2.0
//! A port over AF_XDP: frames in memory shared with the driver, copied by drivers that cannot use it directly.
//!
//! One socket on queue 0: a port that receives by more queues than that is refused. Its lower half of frames receives, the upper half sends; the two halves share nothing
//! but the socket, so that a sending and a receiving thread need no lock.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use aya::Ebpf;
use aya::maps::XskMap;
use aya::programs::Xdp;
use aya::programs::xdp::XdpFlags;

use crate::clock::monotonic_ns;
use crate::failure::{Failure, Outcome};
use crate::port::interface::Interface;
use crate::port::{Batch, FrameReceiver, FrameSender, RxFrame, Sent};
use crate::xdp::object;

/// Bytes of one frame in the shared memory; longer ones do not fit.
const CHUNK: usize = 4096;
const HEADROOM: usize = 256;
/// The longest frame without FCS.
const LONGEST: usize = CHUNK - HEADROOM;
const FRAMES: usize = 4096; // for each half, and entries of each ring
/// How long what is in the ring may take to leave after the last frame was handed over.
const DRAIN_NS: u64 = 1_000_000_000;

/// A ring shared with the kernel, of which this side is the producer or the consumer.
struct Ring<T> {
    memory: *mut u8,
    length: usize,
    producer: *const AtomicU32,
    consumer: *const AtomicU32,
    entries: *mut T,
    /// Our own index: how many entries we have produced or consumed.
    at: u32,
}

// SAFETY: the pointers lead into this ring's own mapping, and only one thread uses each ring.
unsafe impl<T> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    fn map(fd: i32, page_offset: i64, offsets: &libc::xdp_ring_offset) -> Outcome<Self> {
        let length = offsets.desc as usize + FRAMES * size_of::<T>();
        // SAFETY: maps a ring whose size was set before, whole; the result is checked.
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
        // SAFETY: the offsets are the kernel's, within the mapping and aligned.
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

    /// Entries that can be produced now.
    fn room(&self) -> usize {
        // SAFETY: points into the mapping.
        let consumed = unsafe { (*self.consumer).load(Ordering::Acquire) };
        FRAMES - self.at.wrapping_sub(consumed) as usize
    }

    /// Writes entries for the kernel; `entries` are no more than there is room for.
    fn produce(&mut self, entries: impl Iterator<Item = T>) {
        for entry in entries {
            // SAFETY: the index is within the ring.
            unsafe { self.entries.add(self.at as usize % FRAMES).write(entry) };
            self.at = self.at.wrapping_add(1);
        }
        // SAFETY: points into the mapping.
        unsafe { (*self.producer).store(self.at, Ordering::Release) };
    }

    /// Takes what the kernel has produced, at most `most`.
    fn consume(&mut self, most: usize, mut each: impl FnMut(T)) -> usize {
        // SAFETY: points into the mapping.
        let produced = unsafe { (*self.producer).load(Ordering::Acquire) };
        let there = (produced.wrapping_sub(self.at) as usize).min(most);
        for _ in 0..there {
            // SAFETY: the kernel has written this entry.
            each(unsafe { self.entries.add(self.at as usize % FRAMES).read() });
            self.at = self.at.wrapping_add(1);
        }
        if there > 0 {
            // SAFETY: points into the mapping.
            unsafe { (*self.consumer).store(self.at, Ordering::Release) };
        }
        there
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and not used afterwards.
        unsafe { libc::munmap(self.memory.cast(), self.length) };
    }
}

/// The memory both halves use.
struct Memory {
    base: *mut u8,
}

// SAFETY: each frame belongs to one half or the kernel at a time, as the rings say.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

const BYTES: usize = 2 * FRAMES * CHUNK;

impl Memory {
    fn new() -> Outcome<Self> {
        // SAFETY: new anonymous memory; the result is checked.
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
        // SAFETY: mapped in `new`; the socket that used it is closed first or keeps its own reference.
        unsafe { libc::munmap(self.base.cast(), BYTES) };
    }
}

/// What both halves keep alive.
struct Shared {
    socket: OwnedFd,
    memory: Memory,
    /// Detached with it.
    _program: Option<Ebpf>,
    interface: String,
}

fn option<T>(fd: i32, name: i32, value: &T, what: &str) -> Outcome<()> {
    // SAFETY: the value is valid for its size.
    let done = unsafe {
        libc::setsockopt(
            fd,
            libc::SOL_XDP,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if done == 0 {
        Ok(())
    } else {
        Err(Failure::last_os(what))
    }
}

/// Both halves of a port's socket, in the calling thread's network namespace.
///
/// `receives`: frames that arrive come to it; else it only sends.
pub fn open(interface: &Interface, receives: bool) -> Outcome<(Sender, Receiver)> {
    let (name, queues) = (&interface.name, interface.rx_queues);
    if receives && queues > 1 {
        return Err(Failure::new(
            format!(
                "{name} receives by {queues} queues, AF_XDP here by one: frames of the others would be lost"
            ),
            format!(
                "make it one: ethtool -L {name} combined 1 (of a veth first tx 1 at its other end, then ethtool -L {name} rx 1), or \"rx\": \"af_packet\""
            ),
        ));
    }
    // SAFETY: a new descriptor, checked and owned from here on.
    let socket = unsafe {
        let fd = libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return Err(Failure::last_os("a socket of AF_XDP"));
        }
        OwnedFd::from_raw_fd(fd)
    };
    let fd = socket.as_raw_fd();
    let memory = Memory::new()?;
    let registered = libc::xdp_umem_reg_v1 {
        addr: memory.base as u64,
        len: BYTES as u64,
        chunk_size: CHUNK as u32,
        headroom: 0,
    };
    option(
        fd,
        libc::XDP_UMEM_REG,
        &registered,
        "registering memory for AF_XDP",
    )?;
    for (name, what) in [
        (libc::XDP_UMEM_FILL_RING, "the fill ring"),
        (libc::XDP_UMEM_COMPLETION_RING, "the completion ring"),
        (libc::XDP_RX_RING, "the receive ring"),
        (libc::XDP_TX_RING, "the send ring"),
    ] {
        option(fd, name, &(FRAMES as u32), what)?;
    }
    // SAFETY: plain data for which all zero is valid.
    let mut offsets: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::xdp_mmap_offsets>() as libc::socklen_t;
    // SAFETY: `offsets` and `length` are valid for the call.
    if unsafe {
        libc::getsockopt(
            fd,
            libc::SOL_XDP,
            libc::XDP_MMAP_OFFSETS,
            (&raw mut offsets).cast(),
            &mut length,
        )
    } != 0
    {
        return Err(Failure::last_os("the rings of AF_XDP"));
    }
    let mut fill: Ring<u64> = Ring::map(fd, libc::XDP_UMEM_PGOFF_FILL_RING as i64, &offsets.fr)?;
    let completion = Ring::map(fd, libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64, &offsets.cr)?;
    let received = Ring::map(fd, libc::XDP_PGOFF_RX_RING, &offsets.rx)?;
    let sending = Ring::map(fd, libc::XDP_PGOFF_TX_RING, &offsets.tx)?;
    fill.produce((0..FRAMES).map(|frame| (frame * CHUNK) as u64));
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: 0,
        sxdp_ifindex: interface.index as u32,
        sxdp_queue_id: 0,
        sxdp_shared_umem_fd: 0,
    };
    // SAFETY: the address is valid for its size.
    if unsafe {
        libc::bind(
            fd,
            (&raw const address).cast(),
            size_of::<libc::sockaddr_xdp>() as libc::socklen_t,
        )
    } != 0
    {
        return Err(Failure::last_os(format!("binding AF_XDP to {}", interface.name)));
    }
    let program = if receives {
        Some(attach(interface, fd)?)
    } else {
        None
    };
    let shared = Arc::new(Shared {
        socket,
        memory,
        _program: program,
        interface: interface.name.clone(),
    });
    let sender = Sender {
        shared: shared.clone(),
        sending,
        completion,
        free: (FRAMES..2 * FRAMES).map(|frame| (frame * CHUNK) as u64).collect(),
    };
    let receiver = Receiver {
        shared,
        fill,
        received,
        lost_before: 0,
    };
    Ok((sender, receiver))
}

fn attach(interface: &Interface, socket: i32) -> Outcome<Ebpf> {
    let mut program = object::load(object::REDIRECT, &[], &[])?;
    let loaded: &mut Xdp = program
        .program_mut("redirect")
        .and_then(|program| program.try_into().ok())
        .ok_or_else(|| Failure::new("the redirecting program is not there", "report this"))?;
    loaded
        .load()
        .map_err(|error| object::refused("loading", &error))?;
    loaded
        .attach_to_if_index(interface.index as u32, XdpFlags::DRV_MODE)
        .map_err(|error| object::refused("attaching", &error))?;
    let mut sockets: XskMap<_> = program
        .map_mut("sockets")
        .and_then(|map| map.try_into().ok())
        .ok_or_else(|| Failure::new("the map of sockets is not there", "report this"))?;
    sockets
        .set(0, socket, 0)
        .map_err(|error| object::refused("naming the socket of", &error))?;
    Ok(program)
}

pub struct Sender {
    shared: Arc<Shared>,
    sending: Ring<libc::xdp_desc>,
    completion: Ring<u64>,
    free: Vec<u64>,
}

impl Sender {
    /// Copying drivers send only when asked to; the call does not block.
    fn ask(&self) -> Outcome<()> {
        // SAFETY: sends nothing from this process's memory.
        let done = unsafe {
            libc::sendto(
                self.shared.socket.as_raw_fd(),
                std::ptr::null(),
                0,
                libc::MSG_DONTWAIT,
                std::ptr::null(),
                0,
            )
        };
        let error = std::io::Error::last_os_error();
        if done < 0
            && !matches!(
                error.raw_os_error(),
                Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR)
            )
        {
            return Err(Failure::io(
                format!("sending on {}", self.shared.interface),
                &error,
            ));
        }
        Ok(())
    }

    /// Frames that have left come back.
    fn reclaim(&mut self) {
        let free = &mut self.free;
        self.completion
            .consume(FRAMES, |address| free.push(address / CHUNK as u64 * CHUNK as u64));
    }
}

impl FrameSender for Sender {
    fn send(&mut self, batch: &Batch, range: std::ops::Range<usize>) -> Outcome<Sent> {
        self.reclaim();
        let taken = range.len().min(self.free.len()).min(self.sending.room());
        let base = self.shared.memory.base;
        let mut descriptors = Vec::with_capacity(taken);
        for index in range.start..range.start + taken {
            let frame = batch.frame(index);
            if frame.len() > LONGEST {
                return Err(Failure::new(
                    format!("AF_XDP sends frames of at most {} B", LONGEST + crate::frame::FCS),
                    "\"tx\": \"af_packet\"",
                ));
            }
            let address = self.free[self.free.len() - 1 - (index - range.start)];
            // SAFETY: a free frame of the sending half, and the frame is no longer than it.
            unsafe { std::ptr::copy_nonoverlapping(frame.as_ptr(), base.add(address as usize), frame.len()) };
            descriptors.push(libc::xdp_desc {
                addr: address,
                len: frame.len() as u32,
                options: 0,
            });
        }
        self.free.truncate(self.free.len() - taken);
        self.sending.produce(descriptors.into_iter());
        self.ask()?;
        Ok(Sent { taken, refused: 0 })
    }

    /// One call sends only some of what is in the ring.
    fn finish(&mut self) -> Outcome<()> {
        let deadline_ns = monotonic_ns() + DRAIN_NS;
        loop {
            self.reclaim();
            let waiting = FRAMES - self.sending.room();
            if waiting == 0 {
                return Ok(());
            }
            if monotonic_ns() > deadline_ns {
                return Err(Failure::new(
                    format!("{waiting} frames stayed in the ring of {}", self.shared.interface),
                    "look whether the port is up, or use \"tx\": \"af_packet\"",
                ));
            }
            self.ask()?;
        }
    }
}

pub struct Receiver {
    shared: Arc<Shared>,
    fill: Ring<u64>,
    received: Ring<libc::xdp_desc>,
    lost_before: u64,
}

impl Receiver {
    /// Frames that arrived and found no room, since the socket was made.
    fn lost(&self) -> Outcome<u64> {
        // SAFETY: plain data for which all zero is valid.
        let mut found: libc::xdp_statistics = unsafe { std::mem::zeroed() };
        let mut length = size_of::<libc::xdp_statistics>() as libc::socklen_t;
        // SAFETY: `found` and `length` are valid for the call.
        let done = unsafe {
            libc::getsockopt(
                self.shared.socket.as_raw_fd(),
                libc::SOL_XDP,
                libc::XDP_STATISTICS,
                (&raw mut found).cast(),
                &mut length,
            )
        };
        if done != 0 {
            return Err(Failure::last_os("the statistics of AF_XDP"));
        }
        Ok(found.rx_dropped + found.rx_ring_full + found.rx_fill_ring_empty_descs)
    }

    fn take(&mut self, each: &mut dyn FnMut(&RxFrame)) -> usize {
        let base = self.shared.memory.base;
        let at_ns = monotonic_ns();
        let mut back = Vec::new();
        let taken = self.received.consume(256, |descriptor| {
            // SAFETY: the kernel has given this frame to the receiving half.
            let bytes = unsafe {
                std::slice::from_raw_parts(base.add(descriptor.addr as usize), descriptor.len as usize)
            };
            each(&RxFrame {
                bytes,
                wire_length: bytes.len(),
                at_ns,
                checksum_pending: false,
                vlan_tagged: false,
            });
            back.push(descriptor.addr / CHUNK as u64 * CHUNK as u64);
        });
        self.fill.produce(back.into_iter());
        taken
    }
}

impl FrameReceiver for Receiver {
    fn begin(&mut self) -> Outcome<()> {
        for _ in 0..FRAMES {
            if self.take(&mut |_| {}) == 0 {
                break;
            }
        }
        self.lost_before = self.lost()?;
        Ok(())
    }

    fn receive(&mut self, timeout: Duration, each: &mut dyn FnMut(&RxFrame)) -> Outcome<()> {
        if self.take(each) == 0 {
            let mut waiting = libc::pollfd {
                fd: self.shared.socket.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            // SAFETY: one valid pollfd.
            unsafe { libc::poll(&mut waiting, 1, timeout.as_millis() as i32) };
            if waiting.revents & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0 {
                let down = std::io::Error::from_raw_os_error(libc::ENETDOWN);
                return Err(Failure::io(&self.shared.interface, &down));
            }
        }
        while self.take(each) > 0 {}
        Ok(())
    }

    fn overrun(&mut self) -> Outcome<u64> {
        Ok(self.lost()? - self.lost_before)
    }
}
