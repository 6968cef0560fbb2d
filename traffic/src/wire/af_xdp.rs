// SPDX-License-Identifier: Apache-2.0
//! Sends and receives by AF_XDP: the frames are in memory that is shared with the driver, or from which it copies.
//!
//! A port has one socket, on queue 0. An interface that receives by more queues is refused. The sending and the
//! receiving half share only the socket and the memory of the frames, so that their threads need no lock.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use aya::Ebpf;
use aya::maps::XskMap;
use aya::programs::Xdp;
use aya::programs::xdp::XdpFlags;

use crate::failure::{Failure, Outcome};
use crate::frame::octets::FCS;
use crate::host::clock::monotonic_ns;
use crate::wire::interface::Interface;
use crate::wire::shared_rings::{BYTES, CHUNK, FRAMES, Memory, Ring};
use crate::wire::{Batch, FrameReceiver, FrameSender, RxFrame, Sent};
use crate::xdp::object;

/// Bytes in front of a received frame.
const HEADROOM: usize = 256;
/// Length of the longest frame, bytes without FCS.
const LONGEST: usize = CHUNK - HEADROOM;
/// Time within which all frames in the send ring must have left after the end of sending.
const DRAIN_NS: u64 = 1_000_000_000;
/// Number of frames that are taken from the ring with one reading of the clock.
const BATCH: usize = 256;

/// The parts of a port's socket that both halves share and keep alive.
struct Shared {
    socket: OwnedFd,
    memory: Memory,
    /// The program that hands arriving frames to the socket. It is detached when this value is dropped.
    _program: Option<Ebpf>,
    interface: String,
}

fn option<T>(fd: i32, name: i32, value: &T, what: &str) -> Outcome<()> {
    // SAFETY: `value` lives through the call, and its size is given.
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

/// Opens both halves of a port's socket, in the calling thread's network namespace.
///
/// If `receives` is false, the socket only sends, and no program is attached that would hand it arriving frames.
pub fn open(interface: &Interface, receives: bool) -> Outcome<(Sender, Receiver)> {
    if receives {
        refuse_more_queues(interface)?;
    }
    // SAFETY: socket(2) takes no pointers.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(Failure::last_os("a socket of AF_XDP"));
    }
    // SAFETY: `fd` was just opened and has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let memory = Memory::new()?;
    register(fd, &memory)?;
    let offsets = offsets(fd)?;
    let mut fill: Ring<u64> = Ring::map(fd, libc::XDP_UMEM_PGOFF_FILL_RING as i64, &offsets.fr)?;
    let completion = Ring::map(fd, libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64, &offsets.cr)?;
    let received = Ring::map(fd, libc::XDP_PGOFF_RX_RING, &offsets.rx)?;
    let sending = Ring::map(fd, libc::XDP_PGOFF_TX_RING, &offsets.tx)?;
    fill.produce((0..FRAMES).map(|frame| (frame * CHUNK) as u64));
    bind(fd, interface)?;
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

fn refuse_more_queues(interface: &Interface) -> Outcome<()> {
    let (name, queues) = (&interface.name, interface.rx_queues);
    if queues <= 1 {
        return Ok(());
    }
    Err(Failure::new(
        format!("{name} receives by {queues} queues, AF_XDP here by one: frames of the others would be lost"),
        format!(
            "make it one: ethtool -L {name} combined 1 (of a veth first tx 1 at its other end, then ethtool -L {name} rx 1), or \"rx\": \"af_packet\""
        ),
    ))
}

/// Registers the memory with the socket, and sets the sizes of its rings.
fn register(fd: i32, memory: &Memory) -> Outcome<()> {
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
    Ok(())
}

/// Returns the offsets of the parts of the rings in their mappings.
fn offsets(fd: i32) -> Outcome<libc::xdp_mmap_offsets> {
    // SAFETY: all zero is a valid xdp_mmap_offsets.
    let mut offsets: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::xdp_mmap_offsets>() as libc::socklen_t;
    // SAFETY: `length` tells the size of `offsets`, and both live through the call.
    let done = unsafe {
        libc::getsockopt(
            fd,
            libc::SOL_XDP,
            libc::XDP_MMAP_OFFSETS,
            (&raw mut offsets).cast(),
            &mut length,
        )
    };
    if done == 0 {
        Ok(offsets)
    } else {
        Err(Failure::last_os("the rings of AF_XDP"))
    }
}

fn bind(fd: i32, interface: &Interface) -> Outcome<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: 0,
        sxdp_ifindex: interface.index as u32,
        sxdp_queue_id: 0,
        sxdp_shared_umem_fd: 0,
    };
    // SAFETY: pointer and length describe `address`, which lives through the call.
    let done = unsafe {
        libc::bind(
            fd,
            (&raw const address).cast(),
            size_of::<libc::sockaddr_xdp>() as libc::socklen_t,
        )
    };
    if done == 0 {
        Ok(())
    } else {
        Err(Failure::last_os(format!("binding AF_XDP to {}", interface.name)))
    }
}

/// Attaches the program that hands arriving frames to the socket.
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

/// The sending half of a port's socket.
pub struct Sender {
    shared: Arc<Shared>,
    sending: Ring<libc::xdp_desc>,
    completion: Ring<u64>,
    free: Vec<u64>,
}

impl Sender {
    /// Asks the driver to send frames of the ring, which is needed in copy mode. The call does not block.
    fn ask(&self) -> Outcome<()> {
        // SAFETY: a null pointer with length 0: the call reads nothing of this process's memory.
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

    /// Takes back the memory of frames that have left.
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
                    format!("AF_XDP sends frames of at most {} B", LONGEST + FCS),
                    "\"tx\": \"af_packet\" (in a plan: generator: {native: {tx: af_packet}})",
                ));
            }
            let address = self.free[self.free.len() - 1 - (index - range.start)];
            // SAFETY: `address` is that of a free frame of the sending half, which the kernel does not touch until it
            // is produced, and `frame` is no longer than it. The two do not overlap: `frame` is not in the shared
            // memory.
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

    /// Asks the driver repeatedly, because one call sends only some of the frames in the ring. Fails if frames stay in
    /// the ring for DRAIN_NS.
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

/// The receiving half of a port's socket.
pub struct Receiver {
    shared: Arc<Shared>,
    fill: Ring<u64>,
    received: Ring<libc::xdp_desc>,
    lost_before: u64,
}

impl Receiver {
    /// Returns how many arriving frames were dropped for lack of room since the socket was opened.
    fn lost(&self) -> Outcome<u64> {
        // SAFETY: all zero is a valid xdp_statistics.
        let mut found: libc::xdp_statistics = unsafe { std::mem::zeroed() };
        let mut length = size_of::<libc::xdp_statistics>() as libc::socklen_t;
        // SAFETY: `length` tells the size of `found`, and both live through the call.
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
        // rx_fill_ring_empty_descs counts attempts to get a place for a frame. If the driver copies, a frame for which
        // there was none is in rx_dropped too, and some attempts lose no frame. If it does not copy, the card drops the
        // frame, and its own counters show that (real_time/port_counters.rs).
        Ok(found.rx_dropped + found.rx_ring_full)
    }

    fn take(&mut self, each: &mut dyn FnMut(&RxFrame)) -> usize {
        let base = self.shared.memory.base;
        // The clock is read when the frames are known to be there: a time before their arrival would make their latency too
        // small, perhaps negative.
        let there = self.received.ready().min(BATCH);
        let at_ns = monotonic_ns();
        let mut back = Vec::new();
        let taken = self.received.consume(there, |descriptor| {
            // SAFETY: the kernel has given this frame, whose place and length it tells, to the receiving half, which
            // gives it back only after `each`.
            let bytes = unsafe {
                std::slice::from_raw_parts(base.add(descriptor.addr as usize), descriptor.len as usize)
            };
            each(&RxFrame::whole(bytes, at_ns));
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
            // SAFETY: `waiting` is one valid pollfd, as the count says.
            unsafe { libc::poll(&mut waiting, 1, timeout.as_millis() as i32) };
            if waiting.revents & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0 {
                let down = std::io::Error::from_raw_os_error(libc::ENETDOWN);
                return Err(Failure::io(&self.shared.interface, &down));
            }
        }
        // At most one ring: while more arrives than this thread can judge, it must still see that the trial is over.
        for _ in 0..FRAMES.div_ceil(BATCH) {
            if self.take(each) == 0 {
                break;
            }
        }
        Ok(())
    }

    fn overrun(&mut self) -> Outcome<u64> {
        Ok(self.lost()? - self.lost_before)
    }
}
