// SPDX-License-Identifier: Apache-2.0
//! Who has this address? Asking and answering, by ARP (RFC 826) and Neighbour Discovery (RFC 4861).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base64::Engine;

use crate::failure::{Failure, Outcome};
use crate::frame::{ETHERNET, Mac, be16, fold, show_mac, sum};
use crate::port::Port;
use crate::port::socket::PacketSocket;
use crate::protocol::OpenedPort;

const ARP: u16 = 0x0806;
const IPV6: u16 = 0x86dd;
const ICMPV6: u8 = 58;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
const TAG: usize = 4;
const RETRY: Duration = Duration::from_millis(500);
/// How soon a responder sees that it is to end.
const WAIT: Duration = Duration::from_millis(100);

/// A question or an answer about an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    pub question: bool,
    /// The address asked for, or the one answered for.
    pub target: IpAddr,
    pub sender: IpAddr,
    pub mac: Mac,
}

impl Neighbour {
    /// As it is told to those who wait for another.
    fn told(&self) -> String {
        let mac = show_mac(&self.mac);
        if self.question {
            format!("{} ({mac}) asking for {}", self.sender, self.target)
        } else {
            format!("{} ({mac})", self.target)
        }
    }
}

/// What was heard while a gateway was looked for.
#[derive(Debug, Default)]
pub struct Heard(Vec<String>);

impl Heard {
    pub fn note(&mut self, heard: &Neighbour) {
        let line = heard.told();
        if !self.0.contains(&line) && self.0.len() < 5 {
            self.0.push(line);
        }
    }

    /// The gateway did not answer.
    pub fn failure(&self, port: &OpenedPort, address: IpAddr, gateway: IpAddr, timeout_s: f64) -> Failure {
        let heard = if self.0.is_empty() {
            "nothing was heard".into()
        } else {
            format!("heard {}", self.0.join(", "))
        };
        Failure::new(
            format!(
                "port {}: gateway {gateway} did not answer {address} on interface {} within {timeout_s:.1} s; {heard}",
                port.name, port.interface,
            ),
            "check the gateway's address on this link, and that both ends are up and in the same network",
        )
    }
}

fn ethernet(dst: Mac, src: Mac, ethertype: u16) -> Vec<u8> {
    let mut frame = Vec::with_capacity(86);
    frame.extend(dst);
    frame.extend(src);
    frame.extend(ethertype.to_be_bytes());
    frame
}

fn arp(operation: u16, mac: Mac, address: Ipv4Addr, to_mac: Mac, to: Ipv4Addr) -> Vec<u8> {
    let dst = if operation == 1 { [0xff; 6] } else { to_mac };
    let mut frame = ethernet(dst, mac, ARP);
    frame.extend([0, 1, 8, 0, 6, 4]);
    frame.extend(operation.to_be_bytes());
    frame.extend(mac);
    frame.extend(address.octets());
    frame.extend(if operation == 1 { [0; 6] } else { to_mac });
    frame.extend(to.octets());
    frame.resize(60, 0);
    frame
}

/// A neighbour solicitation or advertisement with its link-layer address option.
fn discovery(kind: u8, mac: Mac, src: Ipv6Addr, target: Ipv6Addr, dst_mac: Mac, dst: Ipv6Addr) -> Vec<u8> {
    let mut frame = ethernet(dst_mac, mac, IPV6);
    frame.extend([0x60, 0, 0, 0, 0, 32, ICMPV6, 255]);
    frame.extend(src.octets());
    frame.extend(dst.octets());
    let flags = if kind == ADVERTISEMENT { 0x60 } else { 0 }; // solicited, override
    frame.extend([kind, 0, 0, 0, flags, 0, 0, 0]);
    frame.extend(target.octets());
    frame.extend([if kind == ADVERTISEMENT { 2 } else { 1 }, 1]);
    frame.extend(mac);
    let check = !fold(sum(&frame[ETHERNET + 8..]) + 32 + u64::from(ICMPV6));
    frame[ETHERNET + 42..ETHERNET + 44].copy_from_slice(&check.to_be_bytes());
    frame
}

/// The question for `target`.
fn question(mac: Mac, address: IpAddr, target: IpAddr) -> Option<Vec<u8>> {
    match (address, target) {
        (IpAddr::V4(address), IpAddr::V4(target)) => Some(arp(1, mac, address, [0; 6], target)),
        (IpAddr::V6(address), IpAddr::V6(target)) => {
            let [.., x, y, z] = target.octets();
            let group = Ipv6Addr::new(
                0xff02,
                0,
                0,
                0,
                0,
                1,
                0xff00 | u16::from(x),
                u16::from_be_bytes([y, z]),
            );
            Some(discovery(
                SOLICITATION,
                mac,
                address,
                target,
                [0x33, 0x33, 0xff, x, y, z],
                group,
            ))
        }
        _ => None,
    }
}

/// The answer to `asked`: its target is here.
pub fn answer(mac: Mac, asked: &Neighbour) -> Option<Vec<u8>> {
    match (asked.target, asked.sender) {
        (IpAddr::V4(target), IpAddr::V4(sender)) => Some(arp(2, mac, target, asked.mac, sender)),
        (IpAddr::V6(target), IpAddr::V6(sender)) => {
            // Duplicate address detection asks from the unspecified address: tell everybody.
            let dst = if sender.is_unspecified() {
                Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1)
            } else {
                sender
            };
            Some(discovery(ADVERTISEMENT, mac, target, target, asked.mac, dst))
        }
        _ => None,
    }
}

/// Reads a frame; None if it is neither ARP nor neighbour discovery.
pub fn read(frame: &[u8]) -> Option<Neighbour> {
    let source: Mac = frame.get(6..12)?.try_into().ok()?;
    let v4 = |at: usize| -> Option<IpAddr> {
        let bytes: [u8; 4] = frame.get(at..at + 4)?.try_into().ok()?;
        Some(IpAddr::from(bytes))
    };
    let v6 = |at: usize| -> Option<IpAddr> {
        let bytes: [u8; 16] = frame.get(at..at + 16)?.try_into().ok()?;
        Some(IpAddr::from(bytes))
    };
    match be16(frame.get(..ETHERNET)?, 12) {
        ARP => {
            let operation = be16(frame.get(..42)?, 20);
            Some(Neighbour {
                question: operation == 1,
                target: if operation == 1 { v4(38)? } else { v4(28)? },
                sender: v4(28)?,
                mac: frame.get(22..28)?.try_into().ok()?,
            })
        }
        IPV6 if *frame.get(20)? == ICMPV6 => {
            let kind = *frame.get(54)?;
            let option = frame
                .get(78..86)
                .filter(|option| option[0] == kind - SOLICITATION + 1 && option[1] == 1);
            (kind == SOLICITATION || kind == ADVERTISEMENT).then_some(Neighbour {
                question: kind == SOLICITATION,
                target: v6(62)?,
                sender: v6(22)?,
                mac: option
                    .and_then(|option| option[2..].try_into().ok())
                    .unwrap_or(source),
            })
        }
        _ => None,
    }
}

/// A socket that sees the questions and answers of one IP version and, for IPv6, nothing else: test frames
/// must not cost the responder anything.
fn listen(interface: i32, ipv6: bool) -> Outcome<PacketSocket> {
    let socket = PacketSocket::open()?;
    socket.ignore_outgoing()?;
    if ipv6 {
        let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
        // ICMPv6 of type 135 or 136, else nothing.
        let mut filter = [
            step(0x30, 0, 0, 20),
            step(0x15, 0, 4, u32::from(ICMPV6)),
            step(0x30, 0, 0, 54),
            step(0x15, 1, 0, u32::from(SOLICITATION)),
            step(0x15, 0, 1, u32::from(ADVERTISEMENT)),
            step(0x06, 0, 0, 0x4_0000),
            step(0x06, 0, 0, 0),
        ];
        let program = libc::sock_fprog {
            len: filter.len() as u16,
            filter: filter.as_mut_ptr(),
        };
        socket.set(
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            &program,
            "filter for neighbour discovery",
        )?;
        socket.membership(interface, libc::PACKET_MR_ALLMULTI)?;
    }
    socket.bind(interface, if ipv6 { IPV6 } else { ARP })?;
    Ok(socket)
}

/// The bytes of one VLAN tag, or none. The kernel takes one off before it hands over an answer, not two.
pub fn tags_of(text: &str) -> Outcome<Vec<u8>> {
    let wrong = |what: String| {
        Failure::new(
            format!("tags: {what}"),
            "give base64 of one VLAN tag, such as gQAABw==",
        )
    };
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(text)
        .map_err(|error| wrong(error.to_string()))?;
    if !matches!(bytes.as_slice(), [] | [0x81, 0x00, ..] | [0x88, 0xa8, ..]) || bytes.len() > TAG {
        return Err(wrong(format!("{bytes:02x?}")));
    }
    Ok(bytes)
}

/// The frame with a tag behind its MAC addresses.
pub fn tagged(mut frame: Vec<u8>, tags: &[u8]) -> Vec<u8> {
    frame.splice(12..12, tags.iter().copied());
    frame
}

/// The question for a gateway, with a tag if it lives behind one.
pub fn ask(mac: Mac, address: IpAddr, gateway: IpAddr, tags: &[u8]) -> Outcome<Vec<u8>> {
    match question(mac, address, gateway) {
        Some(frame) => Ok(tagged(frame, tags)),
        None => Err(Failure::new(
            format!("address {address} and gateway {gateway} are of different IP versions"),
            "give both as IPv4 or both as IPv6",
        )),
    }
}

/// Finds the MAC of `gateway`; the error says what was seen instead.
pub fn resolve(
    port: &Port,
    address: IpAddr,
    gateway: IpAddr,
    tags: &[u8],
    timeout: Duration,
) -> Outcome<Mac> {
    let ask = ask(port.mac, address, gateway, tags)?;
    let index = port.index;
    let socket = port.netns.enter(|| listen(index, gateway.is_ipv6()))?;
    let end = Instant::now() + timeout;
    let mut next = Instant::now();
    let mut others = Heard::default();
    let mut buffer = [0u8; 2048];
    loop {
        let now = Instant::now();
        if now >= end {
            break;
        }
        if now >= next {
            socket.send(&ask)?;
            next = now + RETRY;
        }
        socket.wait(
            next.min(end)
                .saturating_duration_since(now)
                .max(Duration::from_millis(1)),
        )?;
        while let Some(length) = socket.receive(&mut buffer) {
            let Some(heard) = read(&buffer[..length]) else {
                continue;
            };
            if !heard.question && heard.target == gateway {
                return Ok(heard.mac);
            }
            others.note(&heard);
        }
    }
    Err(others.failure(&port.told, address, gateway, timeout.as_secs_f64()))
}

/// Answers for an address until dropped.
pub struct Responder {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    pub address: IpAddr,
}

impl Responder {
    /// `tags`: of its answers.
    pub fn start(port: &Port, address: IpAddr, tags: Vec<u8>) -> Outcome<Self> {
        let index = port.index;
        let socket = port.netns.enter(|| listen(index, address.is_ipv6()))?;
        let stop = Arc::new(AtomicBool::new(false));
        let mac = port.mac;
        let stopping = stop.clone();
        let thread = std::thread::Builder::new()
            .name(format!("neigh-{}", port.told.name))
            .spawn(move || {
                let mut buffer = [0u8; 2048];
                while !stopping.load(Ordering::Relaxed) {
                    if socket.wait(WAIT).is_err() {
                        std::thread::sleep(WAIT); // the interface may come back
                        continue;
                    }
                    while let Some(length) = socket.receive(&mut buffer) {
                        let asked =
                            read(&buffer[..length]).filter(|heard| heard.question && heard.target == address);
                        if let Some(frame) = asked.and_then(|asked| answer(mac, &asked)) {
                            // An answer that is not sent is asked for again.
                            let _ = socket.send(&tagged(frame, &tags));
                        }
                    }
                }
            })
            .map_err(|error| Failure::io("starting the ARP and ND responder", &error))?;
        Ok(Responder {
            stop,
            thread: Some(thread),
            address,
        })
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Mac = [2, 0, 0, 0, 0, 1];
    const B: Mac = [2, 0, 0, 0, 0, 2];

    /// An ARP question read back asks for the right address, and its answer answers it.
    #[test]
    fn arp_question_and_answer_fit() {
        let asked =
            read(&question(A, "10.0.0.2".parse().unwrap(), "10.0.0.1".parse().unwrap()).unwrap()).unwrap();
        assert!(asked.question && asked.mac == A);
        let told = read(&answer(B, &asked).unwrap()).unwrap();
        assert_eq!(
            (told.question, told.target.to_string(), told.mac),
            (false, "10.0.0.1".into(), B)
        );
    }

    /// The same for IPv6; the ICMPv6 checksum is right in both.
    #[test]
    fn discovery_question_and_answer_fit() {
        let ask = question(A, "fd00::2".parse().unwrap(), "fd00::1".parse().unwrap()).unwrap();
        let asked = read(&ask).unwrap();
        let reply = answer(B, &asked).unwrap();
        let told = read(&reply).unwrap();
        assert_eq!(
            (told.question, told.target.to_string(), told.mac),
            (false, "fd00::1".into(), B)
        );
        for frame in [ask, reply] {
            assert_eq!(fold(sum(&frame[ETHERNET + 8..]) + 32 + 58), 0xffff);
        }
    }

    /// Short and strange frames are not read, and do not panic.
    #[test]
    fn rubbish_is_ignored() {
        let whole = question(A, "fd00::2".parse().unwrap(), "fd00::1".parse().unwrap()).unwrap();
        for length in 0..70 {
            assert_eq!(read(&whole[..length]), None, "{length}");
        }
    }
}
