// SPDX-License-Identifier: Apache-2.0
//! Opens a port: checks that its network may carry test traffic, and chooses the paths for sending and receiving.

use std::time::{Duration, Instant};

use crate::failure::{Failure, Outcome};
use crate::frame::octets::show_mac;
use crate::host::netlink::Link;
use crate::host::netns::Netns;
use crate::port::{Port, Rx, Tx};
use crate::protocol::{OpenPort, OpenedPort, Path};
use crate::receive::kernel_receiver::KernelReceiver;
use crate::wire::interface::Interface;
use crate::wire::socket::PacketSocket;
use crate::wire::{af_packet, af_xdp};
use crate::xdp::features::{self, Features};

const CARRIER_WAIT: Duration = Duration::from_millis(1500);

/// Opens a port. Fails if its interface may not or cannot be used as asked.
pub fn open(asked: &OpenPort) -> Outcome<Port> {
    let netns = Netns::open(asked.netns.as_deref())?;
    check(asked, &netns)?;
    let at_port =
        |failure: Failure| Failure::new(format!("port {}: {}", asked.name, failure.message), failure.hint);
    let mut notes = Vec::new();
    let (interface, socket, able, link, counters) = netns
        .enter(|| {
            let (interface, socket) = find(asked, netns.name(), &mut notes)?;
            let able = features::of(interface.index as u32);
            let link = || Link::of(interface.index as u32, &interface.name);
            let (link, counters) = (link(), link());
            Ok((interface, socket, able, link, counters))
        })
        .map_err(at_port)?;
    let (xsk_sends, xsk_receives) = netns
        .enter(|| af_xdp_halves(asked, &interface))
        .map_err(at_port)?;
    let (rx, receiver) = match xsk_receives {
        Some(receiver) => (Rx::Packets(Box::new(receiver)), "af_xdp".into()),
        None => receiver(asked, &interface, able, &netns, &mut notes).map_err(at_port)?,
    };
    let (tx, sender) = match xsk_sends {
        Some(sender) => (Tx::Packets(Box::new(sender)), "af_xdp".into()),
        None => sender(asked, &interface, able.zip(link), socket, &mut notes).map_err(at_port)?,
    };
    let told = OpenedPort {
        name: asked.name.clone(),
        interface: interface.name.clone(),
        driver: interface.driver.clone(),
        mac: show_mac(&interface.mac),
        mtu: interface.mtu,
        carrier: interface.carrier,
        speed_mbps: interface.speed_mbps,
        sender,
        receiver,
        notes,
    };
    Ok(Port {
        asked: asked.clone(),
        told,
        mac: interface.mac,
        netns,
        index: interface.index,
        tx,
        rx,
        counters,
        counts_live_frames: None,
        rx_queues: interface.rx_queues,
    })
}

/// Refuses the initial network namespace, unless the user owns that network, and impossible sizes of the receive ring.
fn check(asked: &OpenPort, netns: &Netns) -> Outcome<()> {
    if netns.is_initial() && !asked.i_own_this_network {
        return Err(Failure::new(
            format!(
                "port {}: interface {} is in the initial network namespace: test traffic does not belong on a network in use (RFC 6815)",
                asked.name, asked.interface
            ),
            "move the interface into a namespace of its own, or state \"i_own_this_network\": true",
        ));
    }
    if !(1..=4096).contains(&asked.rx_ring_mib) {
        return Err(Failure::new(
            format!(
                "port {}: rx_ring_mib is {}, expected 1 to 4096",
                asked.name, asked.rx_ring_mib
            ),
            "64 holds two seconds of 200,000 small frames per second",
        ));
    }
    Ok(())
}

/// Opens the sending and the receiving half of an AF_XDP socket as far as the port asks for them, in the calling
/// thread's network namespace.
fn af_xdp_halves(
    asked: &OpenPort,
    interface: &Interface,
) -> Outcome<(Option<af_xdp::Sender>, Option<af_xdp::Receiver>)> {
    let (sends, receives) = (asked.tx == Path::AfXdp, asked.rx == Path::AfXdp);
    if !sends && !receives {
        return Ok((None, None));
    }
    let (sender, receiver) = af_xdp::open(interface, receives)?;
    Ok((sends.then_some(sender), receives.then_some(receiver)))
}

/// Finds the interface, and waits up to CARRIER_WAIT for its carrier.
fn find(asked: &OpenPort, netns: &str, notes: &mut Vec<String>) -> Outcome<(Interface, PacketSocket)> {
    let socket = PacketSocket::open()?;
    let mut interface = Interface::find(&socket, &asked.interface, netns)?;
    // A link that was just brought up reports its carrier a moment later.
    let patience = Instant::now() + CARRIER_WAIT;
    while !interface.carrier && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(20));
        interface = Interface::find(&socket, &asked.interface, netns)?;
    }
    if !interface.carrier {
        notes.push(format!("{} has no carrier: is the other end up?", interface.name));
    }
    Ok((interface, socket))
}

/// Opens the path for receiving: XDP or, if that is impossible or not wanted, AF_PACKET. Returns the path and its name.
fn receiver(
    asked: &OpenPort,
    interface: &Interface,
    able: Option<Features>,
    netns: &Netns,
    notes: &mut Vec<String>,
) -> Outcome<(Rx, String)> {
    if asked.rx != Path::AfPacket {
        let opened = if able.is_none_or(|able| able.receives) {
            KernelReceiver::open(interface.index as u32, netns)
        } else {
            Err(Failure::new(
                format!("{}'s driver runs no XDP programs", interface.name),
                "\"rx\": \"af_packet\"",
            ))
        };
        match opened {
            Ok(opened) => return Ok((Rx::Kernel(Box::new(opened)), "xdp, native".into())),
            Err(failure) if asked.rx == Path::Xdp => return Err(failure),
            Err(failure) => notes.push(format!("receives by AF_PACKET: {}", failure.message)),
        }
    }
    let opened = netns.enter(|| af_packet::Receiver::new(asked, interface))?;
    let shown = format!("af_packet tpacket_v3 {} MiB", asked.rx_ring_mib);
    Ok((Rx::Packets(Box::new(opened)), shown))
}

/// Opens the path for sending: XDP or, if that is not possible or not wanted, AF_PACKET. Returns the path and its name.
fn sender(
    asked: &OpenPort,
    interface: &Interface,
    able: Option<(Features, Link)>,
    socket: PacketSocket,
    notes: &mut Vec<String>,
) -> Outcome<(Tx, String)> {
    if asked.tx != Path::AfPacket {
        match able {
            Some((Features { sends: true, .. }, link)) => {
                return Ok((Tx::Live(link), "xdp live frames".into()));
            }
            _ if asked.tx == Path::Xdp => {
                return Err(Failure::new(
                    format!("{} does not take frames that an XDP program redirects", interface.name),
                    "the other end of a veth needs NAPI: ethtool -K … gro on; the kernel must be 6.3 or later",
                ));
            }
            Some(_) => notes.push(format!(
                "sends by AF_PACKET: {} does not take frames that an XDP program redirects (of a veth the other end needs NAPI: ethtool -K … gro on)",
                interface.name
            )),
            None => notes.push("sends by AF_PACKET: this kernel does not tell what XDP its drivers can".into()),
        }
    }
    let sender = af_packet::Sender::new(socket, interface, notes)?;
    let shown = if sender.bypass {
        "af_packet sendmmsg, qdisc bypass"
    } else {
        "af_packet sendmmsg"
    };
    Ok((Tx::Packets(Box::new(sender)), shown.into()))
}
