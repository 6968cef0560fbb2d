// SPDX-License-Identifier: Apache-2.0
//! The messages of ARP (RFC 826) and Neighbour Discovery (RFC 4861): questions and answers about an address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base64::Engine;

use crate::failure::{Failure, Outcome};
use crate::frame::octets::{ETHERNET, Mac, be16, fold, show_mac, sum};
use crate::protocol::OpenedPort;

pub const ARP: u16 = 0x0806;
pub const IPV6: u16 = 0x86dd;
pub const ICMPV6: u8 = 58;
pub const SOLICITATION: u8 = 135;
pub const ADVERTISEMENT: u8 = 136;
const TAG: usize = 4;

/// A question or an answer about an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    pub question: bool,
    /// The address that the question or the answer is about.
    pub target: IpAddr,
    pub sender: IpAddr,
    pub mac: Mac,
}

impl Neighbour {
    /// Describes the message in the failure of a gateway that did not answer.
    fn told(&self) -> String {
        let mac = show_mac(&self.mac);
        if self.question {
            format!("{} ({mac}) asking for {}", self.sender, self.target)
        } else {
            format!("{} ({mac})", self.target)
        }
    }
}

/// The messages of others that arrived while a gateway was being resolved, as text; at most 5.
#[derive(Debug, Default)]
pub struct Heard(Vec<String>);

impl Heard {
    /// Notes a message, unless the same one is noted already or the list is full.
    pub fn note(&mut self, heard: &Neighbour) {
        let line = heard.told();
        if !self.0.contains(&line) && self.0.len() < 5 {
            self.0.push(line);
        }
    }

    /// Makes the failure of a gateway that did not answer.
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

/// Makes a neighbour solicitation or advertisement with its link-layer address option.
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

/// Makes the question for `target`; None if the IP versions differ.
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

/// Makes the answer to the question `asked`: its target has the address `mac`.
pub fn answer(mac: Mac, asked: &Neighbour) -> Option<Vec<u8>> {
    match (asked.target, asked.sender) {
        (IpAddr::V4(target), IpAddr::V4(sender)) => Some(arp(2, mac, target, asked.mac, sender)),
        (IpAddr::V6(target), IpAddr::V6(sender)) => {
            // The sender of duplicate address detection is the unspecified address, so the answer goes to all nodes.
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

/// Reads a frame; returns None if it is neither ARP nor Neighbour Discovery.
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

/// Reads the base64 of one VLAN tag, or of none. Two tags are refused: the kernel removes only one from an answer.
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

/// Inserts a VLAN tag behind the MAC addresses of a frame; empty `tags` insert nothing.
pub fn tagged(mut frame: Vec<u8>, tags: &[u8]) -> Vec<u8> {
    frame.splice(12..12, tags.iter().copied());
    frame
}

/// Makes the question for a gateway, with a VLAN tag if one is given. Fails if the IP versions differ.
pub fn ask(mac: Mac, address: IpAddr, gateway: IpAddr, tags: &[u8]) -> Outcome<Vec<u8>> {
    match question(mac, address, gateway) {
        Some(frame) => Ok(tagged(frame, tags)),
        None => Err(Failure::new(
            format!("address {address} and gateway {gateway} are of different IP versions"),
            "give both as IPv4 or both as IPv6",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Mac = [2, 0, 0, 0, 0, 1];
    const B: Mac = [2, 0, 0, 0, 0, 2];

    /// An ARP question asks for the right address, and its answer is for the same address.
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

    /// The same holds for IPv6; the ICMPv6 checksum is right in both messages.
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
