// SPDX-License-Identifier: Apache-2.0
//! The XDP features of a port's driver, as the kernel reports them (generic netlink, family "netdev").

use crate::host::netlink::{Netlink, attribute};

/// Bits of `enum netdev_xdp_act` (linux/netdev.h).
const BASIC: u64 = 1;
const NDO_XMIT: u64 = 4;

const CTRL_FAMILY: u16 = 0x10;
const CTRL_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const GENERIC: usize = 4; // bytes of a genlmsghdr
const NETDEV_DEV_GET: u8 = 1;
const NETDEV_A_IFINDEX: u16 = 1;
const NETDEV_A_XDP_FEATURES: u16 = 3;

/// Makes a request: the genlmsghdr of a command, version 1, and one attribute.
fn request(command: u8, kind: u16, value: &[u8]) -> Vec<u8> {
    let mut body = vec![command, 1, 0, 0];
    body.extend((4 + value.len() as u16).to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
    body
}

/// A port's abilities: to run an XDP program on frames that arrive, and to send frames that an XDP program redirects.
///
/// A veth can send redirected frames only if its other end has NAPI (`ethtool -K … gro on`, or an XDP program).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features {
    pub receives: bool,
    pub sends: bool,
}

/// Returns the features of an interface in the calling thread's network namespace; None if the kernel is older than 6.3
/// and does not report them.
pub fn of(index: u32) -> Option<Features> {
    let kernel = Netlink::open(libc::NETLINK_GENERIC)?;
    let answer = kernel.ask(
        CTRL_FAMILY,
        &request(CTRL_GETFAMILY, CTRL_ATTR_FAMILY_NAME, b"netdev\0"),
    )?;
    let family = attribute(&answer[GENERIC..], CTRL_ATTR_FAMILY_ID)?;
    let family = u16::from_ne_bytes(family.get(..2)?.try_into().ok()?);
    let answer = kernel.ask(
        family,
        &request(NETDEV_DEV_GET, NETDEV_A_IFINDEX, &index.to_ne_bytes()),
    )?;
    let bits = attribute(&answer[GENERIC..], NETDEV_A_XDP_FEATURES)?;
    let bits = u64::from_ne_bytes(bits.get(..8)?.try_into().ok()?);
    Some(Features {
        receives: bits & BASIC != 0,
        sends: bits & NDO_XMIT != 0,
    })
}
