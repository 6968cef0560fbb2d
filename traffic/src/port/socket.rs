// SPDX-License-Identifier: Apache-2.0
//! Packet sockets: the system calls, wrapped so that the rest need not be unsafe.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use crate::failure::{Failure, Outcome};

pub struct PacketSocket(OwnedFd);

impl PacketSocket {
    /// `protocol` is an EtherType; nothing is received until the socket is bound.
    pub fn open() -> Outcome<Self> {
        // SAFETY: plain socket call; the new descriptor is owned at once.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(Failure::last_os("packet socket"));
        }
        // SAFETY: `fd` was just opened and has no other owner.
        Ok(PacketSocket(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub fn fd(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// Receive frames of this EtherType (0: none) from one interface.
    pub fn bind(&self, interface: i32, ethertype: u16) -> Outcome<()> {
        // SAFETY: sockaddr_ll is plain data; the pointer and length describe it.
        let result = unsafe {
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_ifindex = interface;
            address.sll_protocol = ethertype.to_be();
            libc::bind(
                self.fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        self.checked(result, "binding a packet socket")
    }

    pub fn set<T>(&self, level: i32, option: i32, value: &T, what: &str) -> Outcome<()> {
        // SAFETY: `value` outlives the call and its size is given.
        let result = unsafe {
            libc::setsockopt(
                self.fd(),
                level,
                option,
                (value as *const T).cast(),
                size_of::<T>() as libc::socklen_t,
            )
        };
        self.checked(result, what)
    }

    /// Take part in PACKET_MR_PROMISC or PACKET_MR_ALLMULTI for as long as the socket lives.
    pub fn membership(&self, interface: i32, kind: i32) -> Outcome<()> {
        let request = libc::packet_mreq {
            mr_ifindex: interface,
            mr_type: kind as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        self.set(
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            &request,
            "receiving all frames of the interface",
        )
    }

    /// Do not hand this socket the frames the interface sends.
    pub fn ignore_outgoing(&self) -> Outcome<()> {
        self.set(
            libc::SOL_PACKET,
            libc::PACKET_IGNORE_OUTGOING,
            &1i32,
            "PACKET_IGNORE_OUTGOING",
        )
    }

    /// Wait until something can be read; false on timeout.
    pub fn wait(&self, timeout: Duration) -> Outcome<bool> {
        let mut poll = libc::pollfd {
            fd: self.fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let ms = timeout.as_millis().min(60_000) as i32;
        // SAFETY: one valid pollfd.
        let result = unsafe { libc::poll(&mut poll, 1, ms) };
        if result < 0 {
            let error = std::io::Error::last_os_error();
            return if error.kind() == std::io::ErrorKind::Interrupted {
                Ok(false)
            } else {
                Err(Failure::io("waiting for frames", &error))
            };
        }
        if poll.revents & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0 {
            let mut error: i32 = 0;
            let mut length = size_of::<i32>() as libc::socklen_t;
            // SAFETY: `error` and `length` are valid for the call.
            unsafe {
                libc::getsockopt(
                    self.fd(),
                    libc::SOL_SOCKET,
                    libc::SO_ERROR,
                    (&raw mut error).cast(),
                    &mut length,
                )
            };
            if error != 0 {
                return Err(Failure::io(
                    "receiving",
                    &std::io::Error::from_raw_os_error(error),
                ));
            }
        }
        Ok(result > 0)
    }

    pub fn send(&self, frame: &[u8]) -> Outcome<()> {
        // SAFETY: `frame` is valid for its length.
        let result = unsafe { libc::send(self.fd(), frame.as_ptr().cast(), frame.len(), 0) };
        self.checked(if result < 0 { -1 } else { 0 }, "sending a frame")
    }

    /// One waiting frame, if there is one.
    pub fn receive(&self, buffer: &mut [u8]) -> Option<usize> {
        // SAFETY: `buffer` is valid for its length.
        let result = unsafe {
            libc::recv(
                self.fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                libc::MSG_DONTWAIT,
            )
        };
        usize::try_from(result).ok()
    }

    fn checked(&self, result: i32, what: &str) -> Outcome<()> {
        if result == 0 {
            Ok(())
        } else {
            Err(Failure::last_os(what))
        }
    }
}
