// SPDX-License-Identifier: Apache-2.0
//! Sends and receives by AF_PACKET, which works on every Ethernet interface of Linux.
//!
//! The sender calls `sendmmsg` with PACKET_QDISC_BYPASS, so that no queueing discipline of the tester drops frames. The
//! receiver reads a TPACKET_V3 ring, whose kernel time stamps do not depend on when the receiver runs.

use std::time::Duration;

use crate::failure::{Failure, Outcome};
use crate::host::clock::realtime_offset_ns;
use crate::protocol::OpenPort;
use crate::wire::interface::Interface;
use crate::wire::socket::PacketSocket;
use crate::wire::{BATCH, Batch, FrameReceiver, FrameSender, RxFrame, Sent};

/// Size of the send buffer, bytes. It is so large that the interface becomes full before the socket does.
const SEND_BUFFER: i32 = 32 << 20;
const BLOCK: usize = 128 << 10;
/// Time after which the kernel hands over a block with frames even if it is not full.
const BLOCK_TIMEOUT_MS: u32 = 1;

/// The sender of one interface.
pub struct Sender {
    socket: PacketSocket,
    interface: String,
    pub bypass: bool,
    /// True on veth and tap. There ENOBUFS means that the next device's ring was full and the frame is lost: the first
    /// loss on the path. If the sender sent the frame again, the DUT's loss would become a lower offered load.
    drops_at_next_ring: bool,
    vectors: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
}

// SAFETY: every `send` sets the raw pointers in `vectors` and `messages` again, and they are not read outside of it.
unsafe impl Send for Sender {}

impl Sender {
    pub fn new(socket: PacketSocket, interface: &Interface, notes: &mut Vec<String>) -> Outcome<Self> {
        let bypass = match socket.set(
            libc::SOL_PACKET,
            libc::PACKET_QDISC_BYPASS,
            &1i32,
            "PACKET_QDISC_BYPASS",
        ) {
            Ok(()) => true,
            Err(failure) => {
                notes.push(format!(
                    "{}: frames pass the interface's queueing discipline",
                    failure.message
                ));
                false
            }
        };
        let forced = socket.set(
            libc::SOL_SOCKET,
            libc::SO_SNDBUFFORCE,
            &SEND_BUFFER,
            "SO_SNDBUFFORCE",
        );
        if forced.is_err() {
            socket.set(libc::SOL_SOCKET, libc::SO_SNDBUF, &SEND_BUFFER, "SO_SNDBUF")?;
            notes.push("the send buffer is limited by net.core.wmem_max (no CAP_NET_ADMIN)".into());
        }
        socket.bind(interface.index, 0)?;
        // SAFETY: iovec and mmsghdr are plain data for which all zero is valid.
        let (vectors, messages) =
            unsafe { (vec![std::mem::zeroed(); BATCH], vec![std::mem::zeroed(); BATCH]) };
        Ok(Sender {
            socket,
            interface: interface.name.clone(),
            bypass,
            // A small send buffer may be the reason why a frame is not taken; then it is sent again.
            drops_at_next_ring: bypass
                && forced.is_ok()
                && matches!(interface.driver.as_str(), "veth" | "tun"),
            vectors,
            messages,
        })
    }
}

impl FrameSender for Sender {
    fn send(&mut self, batch: &Batch, range: std::ops::Range<usize>) -> Outcome<Sent> {
        let count = range.len().min(BATCH);
        for (slot, index) in range.take(count).enumerate() {
            let frame = batch.frame(index);
            self.vectors[slot] = libc::iovec {
                iov_base: frame.as_ptr().cast_mut().cast(),
                iov_len: frame.len(),
            };
            self.messages[slot].msg_hdr.msg_iov = &raw mut self.vectors[slot];
            self.messages[slot].msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: each of the first `count` messages points to its vector, and that to a frame that is borrowed for
        // this call. The kernel only reads them, and writes nothing but each message's `msg_len`.
        let result = unsafe {
            libc::sendmmsg(
                self.socket.fd(),
                self.messages.as_mut_ptr(),
                count as u32,
                libc::MSG_DONTWAIT,
            )
        };
        let taken = match usize::try_from(result) {
            Ok(taken) => taken,
            Err(_) => {
                let error = std::io::Error::last_os_error();
                match error.raw_os_error() {
                    Some(libc::ENOBUFS) => 0,
                    Some(libc::EAGAIN | libc::EINTR) => return Ok(Sent { taken: 0, refused: 0 }),
                    _ => return Err(Failure::io(format!("sending on {}", self.interface), &error)),
                }
            }
        };
        // sendmmsg stops at the first frame that failed, and does not return the reason. A forced send buffer is too
        // large to be the reason.
        if taken < count && self.drops_at_next_ring {
            return Ok(Sent {
                taken: taken + 1,
                refused: 1,
            });
        }
        Ok(Sent { taken, refused: 0 })
    }
}

/// The receiver of one interface.
pub struct Receiver {
    socket: PacketSocket,
    interface: String,
    ring: *mut u8,
    blocks: usize,
    next: usize,
    offset_ns: i64,
    dropped: u64,
}

// SAFETY: no other value points into the mapping, which does not depend on the thread.
unsafe impl Send for Receiver {}

impl Receiver {
    pub fn new(asked: &OpenPort, interface: &Interface) -> Outcome<Self> {
        let socket = PacketSocket::open()?;
        let set = |option, value: i32, what| socket.set(libc::SOL_PACKET, option, &value, what);
        set(
            libc::PACKET_VERSION,
            libc::tpacket_versions::TPACKET_V3 as i32,
            "TPACKET_V3",
        )?;
        socket.ignore_outgoing()?;
        let blocks = (asked.rx_ring_mib << 20) / BLOCK;
        let frame_size = 2048;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: frame_size,
            tp_frame_nr: (BLOCK / frame_size as usize * blocks) as u32,
            tp_retire_blk_tov: BLOCK_TIMEOUT_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        socket.set(
            libc::SOL_PACKET,
            libc::PACKET_RX_RING,
            &request,
            &format!("a receive ring of {} MiB", asked.rx_ring_mib),
        )?;
        // SAFETY: mmap with a null address replaces no other mapping; the length is that of the ring just set up, and
        // the result is checked.
        let ring = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                BLOCK * blocks,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.fd(),
                0,
            )
        };
        if ring == libc::MAP_FAILED {
            return Err(Failure::last_os("mapping the receive ring"));
        }
        let receiver = Receiver {
            socket,
            interface: interface.name.clone(),
            ring: ring.cast(),
            blocks,
            next: 0,
            offset_ns: realtime_offset_ns(),
            dropped: 0,
        };
        if asked.promiscuous {
            receiver
                .socket
                .membership(interface.index, libc::PACKET_MR_PROMISC)?;
        }
        receiver.socket.bind(interface.index, libc::ETH_P_ALL as u16)?;
        Ok(receiver)
    }

    /// Hands the frames of the next block to `each`; returns false if the kernel has not filled the block yet.
    fn take_block(&mut self, each: &mut dyn FnMut(&RxFrame)) -> bool {
        // SAFETY: `next` < `blocks`, so the block is inside the mapping. The kernel gives it up by setting
        // TP_STATUS_USER (read with acquire) and does not touch it until it is given back (release). The kernel writes
        // the offsets and lengths inside, which stay within the block. No frame that `each` sees outlives this call.
        unsafe {
            let block = self.ring.add(self.next * BLOCK);
            let header = &raw mut (*block.cast::<libc::tpacket_block_desc>()).hdr.bh1;
            let status = std::sync::atomic::AtomicU32::from_ptr(&raw mut (*header).block_status);
            if status.load(std::sync::atomic::Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                return false;
            }
            let mut packet = block.add((*header).offset_to_first_pkt as usize);
            for _ in 0..(*header).num_pkts {
                let meta = &*packet.cast::<libc::tpacket3_hdr>();
                let wall = i64::from(meta.tp_sec) * 1_000_000_000 + i64::from(meta.tp_nsec);
                each(&RxFrame {
                    bytes: std::slice::from_raw_parts(
                        packet.add(meta.tp_mac as usize),
                        meta.tp_snaplen as usize,
                    ),
                    wire_length: meta.tp_len as usize,
                    at_ns: (wall - self.offset_ns) as u64,
                    checksum_pending: meta.tp_status & libc::TP_STATUS_CSUMNOTREADY != 0,
                    vlan_tagged: meta.tp_status & libc::TP_STATUS_VLAN_VALID != 0,
                });
                packet = packet.add(meta.tp_next_offset as usize);
            }
            status.store(libc::TP_STATUS_KERNEL, std::sync::atomic::Ordering::Release);
        }
        self.next = (self.next + 1) % self.blocks;
        true
    }

    /// Adds the frames that the kernel dropped since the last call (reading its counter clears it).
    fn read_drops(&mut self) -> Outcome<()> {
        let mut statistics = libc::tpacket_stats_v3 {
            tp_packets: 0,
            tp_drops: 0,
            tp_freeze_q_cnt: 0,
        };
        let mut length = size_of::<libc::tpacket_stats_v3>() as libc::socklen_t;
        // SAFETY: `length` tells the size of `statistics`, and both live through the call.
        let result = unsafe {
            libc::getsockopt(
                self.socket.fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &mut length,
            )
        };
        if result != 0 {
            return Err(Failure::last_os("reading the ring's statistics"));
        }
        self.dropped += u64::from(statistics.tp_drops);
        Ok(())
    }
}

impl FrameReceiver for Receiver {
    fn begin(&mut self) -> Outcome<()> {
        // Discards at most as many blocks as the ring has, so that the loop ends even if frames keep arriving.
        for _ in 0..self.blocks {
            if !self.take_block(&mut |_| {}) {
                break;
            }
        }
        self.read_drops()?;
        self.dropped = 0;
        self.offset_ns = realtime_offset_ns();
        Ok(())
    }

    fn receive(&mut self, timeout: Duration, each: &mut dyn FnMut(&RxFrame)) -> Outcome<()> {
        if !self.take_block(each) {
            self.socket.wait(timeout).map_err(|failure| {
                Failure::new(format!("{}: {}", self.interface, failure.message), failure.hint)
            })?;
        }
        for _ in 0..self.blocks {
            if !self.take_block(each) {
                break;
            }
        }
        Ok(())
    }

    fn overrun(&mut self) -> Outcome<u64> {
        self.read_drops()?;
        Ok(self.dropped)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new` with this length and is not used afterwards.
        unsafe { libc::munmap(self.ring.cast(), BLOCK * self.blocks) };
    }
}
