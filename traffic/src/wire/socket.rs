// SPDX-License-Identifier: Apache-2.0
//! Wraps the system calls of packet sockets in safe functions.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use crate::failure::{Failure, Outcome};

/// A packet socket.
pub struct PacketSocket(OwnedFd);

impl PacketSocket {
    /// Opens a socket. It receives no frames until it is bound.
    pub fn open() -> Outcome<Self> {
        // SAFETY: socket(2) takes no pointers.
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

    /// Binds the socket to one interface. It receives frames of this EtherType (0: no frames).
    pub fn bind(&self, interface: i32, ethertype: u16) -> Outcome<()> {
        // SAFETY: all zero is a valid sockaddr_ll; pointer and length describe it, and it lives through the call.
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

    /// Sets an option. If that fails, the message names it by `what`.
    pub fn set<T>(&self, level: i32, option: i32, value: &T, what: &str) -> Outcome<()> {
        // SAFETY: `value` lives through the call, and its size is given.
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

    /// Enables a mode of the interface (PACKET_MR_PROMISC or PACKET_MR_ALLMULTI) until the socket is closed.
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

    /// Lets the socket ignore the frames that the interface sends.
    pub fn ignore_outgoing(&self) -> Outcome<()> {
        self.set(
            libc::SOL_PACKET,
            libc::PACKET_IGNORE_OUTGOING,
            &1i32,
            "PACKET_IGNORE_OUTGOING",
        )
    }

    /// Waits until a frame can be read; returns false after the timeout or a signal. Fails if the interface is down.
    pub fn wait(&self, timeout: Duration) -> Outcome<bool> {
        let mut poll = libc::pollfd {
            fd: self.fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let ms = timeout.as_millis().min(60_000) as i32;
        // SAFETY: `poll` is one valid pollfd, as the count says.
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
            // SAFETY: `length` tells the size of `error`, and both live through the call.
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
        // SAFETY: `frame` is readable for its length.
        let result = unsafe { libc::send(self.fd(), frame.as_ptr().cast(), frame.len(), 0) };
        self.checked(if result < 0 { -1 } else { 0 }, "sending a frame")
    }

    /// Takes one waiting frame, if there is one; returns its length.
    pub fn receive(&self, buffer: &mut [u8]) -> Option<usize> {
        // SAFETY: `buffer` is writable for its length.
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
