// SPDX-License-Identifier: Apache-2.0
//! Netlink: requests to the kernel and its answers, and the state and the counters of an interface.

use crate::failure::{Failure, Outcome};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const HEADER: usize = 16; // nlmsghdr
const NLMSG_ERROR: u16 = 2;
const RTM_GETLINK: u16 = 18;
const IFLA_LINKINFO: u16 = 18;
const IFLA_STATS64: u16 = 23;
const IFLA_INFO_KIND: u16 = 1;
const IFINFOMSG: usize = 16;

/// A netlink socket. It stays in the network namespace it was opened in.
#[derive(Debug)]
pub struct Netlink(OwnedFd);

impl Netlink {
    pub fn open(protocol: libc::c_int) -> Option<Self> {
        // SAFETY: socket(2) takes no pointers; the new descriptor is checked, and nobody else owns it.
        unsafe {
            let fd = libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol);
            (fd >= 0).then(|| Netlink(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// Sends one message of type `kind`; returns the body of the answer, or None if the kernel refuses it.
    pub fn ask(&self, kind: u16, body: &[u8]) -> Option<Vec<u8>> {
        let length = HEADER + body.len().next_multiple_of(4);
        let mut message = Vec::with_capacity(length);
        message.extend((length as u32).to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
        message.extend([0; 8]); // sequence, port
        message.extend(body);
        message.resize(length, 0);
        let mut answer = vec![0u8; 32_768];
        // SAFETY: `message` is readable and `answer` writable for the lengths given.
        let got = unsafe {
            let fd = self.0.as_raw_fd();
            if libc::send(fd, message.as_ptr().cast(), message.len(), 0) < 0 {
                return None;
            }
            libc::recv(fd, answer.as_mut_ptr().cast(), answer.len(), 0)
        };
        answer.truncate(usize::try_from(got).ok()?);
        let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
        (kind != NLMSG_ERROR && answer.len() > HEADER).then(|| answer.split_off(HEADER))
    }
}

/// Returns the value of the first attribute of type `wanted`; None if there is none, or if an attribute is cut.
pub fn attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    while attributes.len() >= 4 {
        let length = usize::from(u16::from_ne_bytes([attributes[0], attributes[1]]));
        let kind = u16::from_ne_bytes([attributes[2], attributes[3]]) & 0x3fff;
        let value = attributes.get(4..length)?;
        if kind == wanted {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
    None
}

/// The state of an interface at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkState {
    pub up: bool,
    /// True for a TAP. It counts a frame as sent when the frame is read from its file, which may be much later.
    pub tap: bool,
    /// Number of frames that left the interface.
    pub sent: u64,
    /// Number of frames for which the interface, or the ring behind it, had no room.
    pub dropped: u64,
    /// Numbers of arriving frames for which a card had no room: rx_over_errors, rx_fifo_errors, rx_missed_errors. Devices
    /// without hardware leave them at 0. rx_dropped is not among them, because it also counts frames that nobody wanted.
    pub missed: [u64; 3],
    /// Numbers of frames that arrived damaged: rx_length_errors, rx_crc_errors, rx_frame_errors. Devices without hardware
    /// leave them at 0.
    pub damaged: [u64; 3],
}

/// Returns the state of the interface that the kernel described; None if a part is missing.
fn state_of(answer: &[u8]) -> Option<LinkState> {
    let flags = u32::from_ne_bytes(answer.get(8..12)?.try_into().ok()?);
    let counters = attribute(answer.get(IFINFOMSG..)?, IFLA_STATS64)?;
    let counter = |place: usize| -> Option<u64> {
        Some(u64::from_ne_bytes(
            counters.get(8 * place..8 * place + 8)?.try_into().ok()?,
        ))
    };
    let kind =
        attribute(answer.get(IFINFOMSG..)?, IFLA_LINKINFO).and_then(|info| attribute(info, IFLA_INFO_KIND));
    // struct rtnl_link_stats64: rx_packets, tx_packets, …, rx_dropped, tx_dropped (7), …, rx_length_errors (10),
    // rx_over_errors, rx_crc_errors, rx_frame_errors, rx_fifo_errors, rx_missed_errors.
    Some(LinkState {
        up: flags & libc::IFF_UP as u32 != 0,
        tap: kind.is_some_and(|kind| kind.starts_with(b"tun")),
        sent: counter(1)?,
        dropped: counter(7)?,
        missed: [counter(11)?, counter(14)?, counter(15)?],
        damaged: [counter(10)?, counter(12)?, counter(13)?],
    })
}

/// A socket that reads the state of one interface.
#[derive(Debug)]
pub struct Link {
    kernel: Netlink,
    index: u32,
    pub name: String,
}

impl Link {
    /// Opens the socket in the calling thread's network namespace; returns None if the kernel refuses it.
    pub fn of(index: u32, name: &str) -> Option<Self> {
        Some(Link {
            kernel: Netlink::open(libc::NETLINK_ROUTE)?,
            index,
            name: name.into(),
        })
    }

    /// Returns the interface's state; None if it is gone.
    pub fn look(&self) -> Option<LinkState> {
        let mut body = [0; IFINFOMSG];
        body[4..8].copy_from_slice(&self.index.to_ne_bytes());
        state_of(&self.kernel.ask(RTM_GETLINK, &body)?)
    }

    /// Returns the interface's state. Fails if the interface is down or gone.
    pub fn check(&self) -> Outcome<LinkState> {
        let state = self
            .look()
            .ok_or_else(|| Failure::io(&self.name, &std::io::Error::from_raw_os_error(libc::ENODEV)))?;
        if !state.up {
            return Err(Failure::io(
                &self.name,
                &std::io::Error::from_raw_os_error(libc::ENETDOWN),
            ));
        }
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An attribute behind a padded one is found; an attribute that is longer than the message is not.
    #[test]
    fn attributes_are_found() {
        let bytes = [5, 0, 7, 0, 9, 0, 0, 0, 6, 0, 3, 0, 1, 2, 0, 0];
        assert_eq!(attribute(&bytes, 3), Some(&[1u8, 2][..]));
        assert_eq!(attribute(&bytes, 4), None);
        assert_eq!(attribute(&[9, 0, 3, 0, 1], 3), None);
    }

    /// Each count is read from its own place of the kernel's structure.
    #[test]
    fn counters_are_read_from_their_places() {
        let mut answer = vec![0; IFINFOMSG];
        answer[8] = libc::IFF_UP as u8;
        answer.extend([(4 + 8 * 16) as u8, 0, IFLA_STATS64 as u8, 0]);
        answer.extend((0..16u64).flat_map(u64::to_ne_bytes));
        let expected = LinkState {
            up: true,
            tap: false,
            sent: 1,
            dropped: 7,
            missed: [11, 14, 15],
            damaged: [10, 12, 13],
        };
        assert_eq!(state_of(&answer), Some(expected));
        assert_eq!(state_of(&answer[..answer.len() - 8]), None);
    }
}
