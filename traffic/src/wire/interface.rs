// SPDX-License-Identifier: Apache-2.0
//! An interface as the kernel describes it: index, address, state, driver.

use crate::failure::{Failure, Outcome};
use crate::wire::socket::PacketSocket;

const ETHTOOL_GSET: u32 = 0x1;
const ETHTOOL_GDRVINFO: u32 = 0x3;
const ETHTOOL_GCHANNELS: u32 = 0x3c;

#[derive(Debug, Clone)]
pub struct Interface {
    pub name: String,
    pub index: i32,
    pub mac: [u8; 6],
    pub mtu: u32,
    pub carrier: bool,
    pub speed_mbps: Option<u32>,
    pub driver: String,
    /// Number of queues by which frames come in; 1 if the driver does not say.
    pub rx_queues: u32,
}

struct Query<'a> {
    socket: &'a PacketSocket,
    name: &'a str,
}

impl Query<'_> {
    fn request(&self) -> libc::ifreq {
        // SAFETY: all zero is a valid ifreq.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(self.name.bytes()) {
            *to = from as libc::c_char;
        }
        request
    }

    fn ask(&self, what: libc::Ioctl) -> std::io::Result<libc::ifreq> {
        let mut request = self.request();
        // SAFETY: `request` is a whole ifreq, as all SIOCGIF* calls expect, and lives through the call.
        if unsafe { libc::ioctl(self.socket.fd(), what, &mut request) } < 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(request)
    }

    /// Sends an ethtool query whose answer fits into 256 bytes; returns None if the driver does not support it.
    fn ethtool(&self, command: u32) -> Option<[u8; 256]> {
        let mut data = [0u8; 256];
        data[..4].copy_from_slice(&command.to_ne_bytes());
        let mut request = self.request();
        request.ifr_ifru.ifru_data = data.as_mut_ptr().cast();
        // SAFETY: `request` points to `data`, which is larger than the structures of all commands used; both live
        // through the call.
        let result = unsafe { libc::ioctl(self.socket.fd(), libc::SIOCETHTOOL as libc::Ioctl, &mut request) };
        (result >= 0).then_some(data)
    }

    fn speed_mbps(&self) -> Option<u32> {
        let data = self.ethtool(ETHTOOL_GSET)?;
        let low = u32::from(u16::from_ne_bytes([data[12], data[13]]));
        let high = u32::from(u16::from_ne_bytes([data[28], data[29]]));
        let speed = low | high << 16;
        (speed != 0 && speed != 0xffff && speed != u32::MAX).then_some(speed)
    }

    fn driver(&self) -> String {
        let name = |data: [u8; 256]| {
            data[4..36]
                .iter()
                .take_while(|&&byte| byte != 0)
                .map(|&byte| byte as char)
                .collect()
        };
        self.ethtool(ETHTOOL_GDRVINFO).map_or_else(String::new, name)
    }

    fn rx_queues(&self) -> u32 {
        // struct ethtool_channels has cmd, four maxima, then rx, tx, other, combined.
        self.ethtool(ETHTOOL_GCHANNELS).map_or(1, |data| {
            let word = |at: usize| u32::from_ne_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]]);
            (word(20) + word(32)).max(1)
        })
    }
}

impl Interface {
    /// Finds an interface in the network namespace of `socket`. Fails unless it exists, is an Ethernet interface and is
    /// up.
    pub fn find(socket: &PacketSocket, name: &str, netns: &str) -> Outcome<Self> {
        if name.is_empty() || name.len() >= libc::IFNAMSIZ {
            return Err(Failure::new(
                format!("'{name}' is not an interface name"),
                "names have 1 to 15 characters; see `ip link`",
            ));
        }
        let query = Query { socket, name };
        let failed = |error: std::io::Error| match error.raw_os_error() {
            Some(libc::ENODEV) => Failure::new(
                format!("there is no interface {name} in network namespace {netns}"),
                "see `ip link` in that namespace",
            ),
            _ => Failure::io(format!("interface {name}"), &error),
        };
        let index = query.ask(libc::SIOCGIFINDEX as libc::Ioctl).map_err(failed)?;
        let flags = query.ask(libc::SIOCGIFFLAGS as libc::Ioctl).map_err(failed)?;
        let mtu = query.ask(libc::SIOCGIFMTU as libc::Ioctl).map_err(failed)?;
        let address = query.ask(libc::SIOCGIFHWADDR as libc::Ioctl).map_err(failed)?;
        // SAFETY: each union member read is the one its ioctl filled in.
        let (index, flags, mtu, address) = unsafe {
            (
                index.ifr_ifru.ifru_ifindex,
                i32::from(flags.ifr_ifru.ifru_flags),
                mtu.ifr_ifru.ifru_mtu,
                address.ifr_ifru.ifru_hwaddr,
            )
        };
        if address.sa_family != libc::ARPHRD_ETHER {
            return Err(Failure::new(
                format!(
                    "interface {name} is not an Ethernet interface (type {})",
                    address.sa_family
                ),
                "choose an Ethernet port",
            ));
        }
        if flags & libc::IFF_UP == 0 {
            return Err(Failure::new(
                format!("interface {name} in network namespace {netns} is down"),
                format!("bring it up: ip link set {name} up"),
            ));
        }
        let mut mac = [0; 6];
        for (to, from) in mac.iter_mut().zip(address.sa_data) {
            *to = from as u8;
        }
        Ok(Interface {
            name: name.into(),
            index,
            mac,
            mtu: mtu.try_into().unwrap_or(0),
            carrier: flags & libc::IFF_RUNNING != 0,
            speed_mbps: query.speed_mbps(),
            driver: query.driver(),
            rx_queues: query.rx_queues(),
        })
    }
}
