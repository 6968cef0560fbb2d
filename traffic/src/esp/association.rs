// SPDX-License-Identifier: Apache-2.0
//! One SA: its keys, its outer addresses, and the layout of its packets.

use std::net::IpAddr;
use std::ops::Range;

use crate::esp::suite::{HEADER, Keyed};
use crate::failure::{Failure, Outcome};
use crate::frame::octets::{ETHERNET, be16, fold, sum};
use crate::protocol;

const PROTOCOL_ESP: u8 = 50;
const NEXT_IPV4: u8 = 4;
const NEXT_IPV6: u8 = 41;
const TRAILER: usize = 2;
const TTL: u8 = 64;

/// A Security Association (SA) in tunnel mode.
pub struct Sa {
    pub spi: u32,
    pub keyed: Keyed,
    /// The outer IP header. Its length field and, in IPv4, its checksum are zero.
    outer: Vec<u8>,
    outer_sum: u64,
    pub ethertype: u16,
}

/// The place of an ESP packet in a frame (from the SPI at `from` to `end`), its SPI and its 32-bit sequence number.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    pub spi: u32,
    pub number: u32,
    pub from: usize,
    pub end: usize,
}

/// The result of decrypting a packet.
#[derive(Debug)]
pub enum Content {
    /// The packet is authentic; the inner frame is at this range of the buffer.
    Frame(Range<usize>),
    BadIcv,
    Malformed,
}

impl Content {
    /// Returns the frame in the buffer; an empty slice for a packet that was not opened.
    pub fn frame<'a>(&self, buffer: &'a [u8]) -> &'a [u8] {
        match self {
            Content::Frame(range) => &buffer[range.clone()],
            _ => &[],
        }
    }
}

impl Sa {
    pub fn new(asked: &protocol::Association) -> Outcome<Self> {
        let at_sa = |failure: Failure| {
            Failure::new(
                format!("SA {:#010x}: {}", asked.spi, failure.message),
                failure.hint,
            )
        };
        if asked.spi < 0x100 {
            return Err(at_sa(Failure::new("SPIs below 256 are reserved", "RFC 4303 2.1")));
        }
        let keyed = Keyed::new(
            asked.suite,
            asked.esn,
            asked.encryption_key.bytes(),
            asked.integrity_key.bytes(),
        )
        .map_err(at_sa)?;
        let outer = match (asked.source, asked.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                // DF is set, so the packet is never fragmented and needs no identification (RFC 6864).
                let mut header = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, TTL, PROTOCOL_ESP, 0, 0];
                header.extend(source.octets());
                header.extend(destination.octets());
                header
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let mut header = vec![0x60, 0, 0, 0, 0, 0, PROTOCOL_ESP, TTL];
                header.extend(source.octets());
                header.extend(destination.octets());
                header
            }
            _ => {
                return Err(at_sa(Failure::new(
                    "source and destination are of different IP versions",
                    "give both as IPv4 or both as IPv6",
                )));
            }
        };
        Ok(Sa {
            spi: asked.spi,
            keyed,
            outer_sum: sum(&outer),
            ethertype: if outer.len() == 20 { 0x0800 } else { 0x86dd },
            outer,
        })
    }

    /// Returns the length of the outer IP header.
    pub fn outer_bytes(&self) -> usize {
        self.outer.len()
    }

    /// Returns the length of the outer packet whose inner packet has `inner` bytes.
    pub fn packet_bytes(&self, inner: usize) -> usize {
        let suite = self.keyed.suite;
        let payload = (inner + TRAILER).next_multiple_of(suite.align());
        self.outer.len() + HEADER + suite.iv_bytes() + payload + suite.icv_bytes()
    }

    /// Seals an IP packet with this sequence number. Writes the outer packet to the start of `out`; returns its length.
    pub fn seal(&self, inner: &[u8], number: u64, out: &mut [u8]) -> usize {
        let suite = self.keyed.suite;
        let length = self.packet_bytes(inner.len());
        let (header, esp) = out[..length].split_at_mut(self.outer.len());
        header.copy_from_slice(&self.outer);
        if self.ethertype == 0x0800 {
            header[2..4].copy_from_slice(&(length as u16).to_be_bytes());
            let check = !fold(self.outer_sum + length as u64);
            header[10..12].copy_from_slice(&check.to_be_bytes());
        } else {
            header[4..6].copy_from_slice(&(esp.len() as u16).to_be_bytes());
        }
        esp[..4].copy_from_slice(&self.spi.to_be_bytes());
        esp[4..HEADER].copy_from_slice(&(number as u32).to_be_bytes());
        let iv = &mut esp[HEADER..HEADER + suite.iv_bytes()];
        if suite.is_aead() {
            iv.copy_from_slice(&number.to_be_bytes()); // unique for each packet (RFC 4106 3.1)
        } else {
            scramble(number, self.spi, iv);
        }
        let from = HEADER + suite.iv_bytes();
        let padding = length - self.outer.len() - suite.icv_bytes() - from - inner.len() - TRAILER;
        let (payload, trailer) = esp[from..].split_at_mut(inner.len());
        payload.copy_from_slice(inner);
        for (place, byte) in trailer[..padding].iter_mut().enumerate() {
            *byte = place as u8 + 1; // 1, 2, 3, … (RFC 4303 2.4)
        }
        trailer[padding] = padding as u8;
        trailer[padding + 1] = if inner[0] >> 4 == 4 { NEXT_IPV4 } else { NEXT_IPV6 };
        self.keyed.seal(esp, (number >> 32) as u32);
        length
    }

    /// Opens the ESP packet `esp`. The inner packet becomes a frame in `buffer`, with the MAC addresses of `frame`.
    pub fn open(&self, esp: &[u8], number: u64, frame: &[u8], buffer: &mut Vec<u8>) -> Content {
        let suite = self.keyed.suite;
        let head = HEADER + suite.iv_bytes();
        let payload = esp.len().checked_sub(head + suite.icv_bytes());
        if payload.is_none_or(|payload| payload == 0 || payload % suite.align() != 0) {
            return Content::Malformed;
        }
        // The Ethernet header of the inner packet will replace the last bytes before the payload.
        buffer.clear();
        buffer.extend([0; ETHERNET]);
        buffer.extend(esp);
        if !self.keyed.open(&mut buffer[ETHERNET..], (number >> 32) as u32) {
            return Content::BadIcv;
        }
        let payload = &buffer[ETHERNET + head..ETHERNET + esp.len() - suite.icv_bytes()];
        let Some(inner) = inner(payload) else {
            return Content::Malformed;
        };
        let ethertype = if inner[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] };
        let range = head..head + ETHERNET + inner.len();
        buffer[head..head + 12].copy_from_slice(&frame[..12]);
        buffer[head + 12..head + ETHERNET].copy_from_slice(&ethertype);
        Content::Frame(range)
    }

    /// Returns whether the source and destination addresses of an IP packet are the outer addresses of this SA.
    pub fn addresses_are(&self, packet: &[u8]) -> bool {
        let (from, octets) = if self.outer.len() == 20 { (12, 8) } else { (8, 32) };
        packet.get(from..from + octets) == Some(&self.outer[from..])
    }
}

/// Makes an IV for CBC that differs from packet to packet. It is predictable, which does not matter for test frames.
fn scramble(number: u64, spi: u32, iv: &mut [u8]) {
    let mut state = number ^ u64::from(spi) << 32;
    for part in iv.chunks_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        part.copy_from_slice(&(mixed ^ mixed >> 27).to_be_bytes()[..part.len()]);
    }
}

/// Finds the ESP packet in an Ethernet frame; returns None if there is none, if it is a fragment, or if it is cut.
pub fn find(frame: &[u8]) -> Option<Found> {
    let packet = frame.get(14..)?;
    let (header, end) = match be16(frame, 12) {
        0x0800 => {
            let header = 4 * usize::from(packet.first()? & 15);
            let sound = packet.len() >= header
                && header >= 20
                && packet[9] == PROTOCOL_ESP
                && be16(packet, 6) & 0x3fff == 0
                && fold(sum(&packet[..header])) == 0xffff;
            if !sound {
                return None;
            }
            (header, usize::from(be16(packet, 2)))
        }
        0x86dd if packet.len() >= 40 && packet[6] == PROTOCOL_ESP => (40, 40 + usize::from(be16(packet, 4))),
        _ => return None,
    };
    let esp = packet.get(header..end)?;
    let spi = u32::from_be_bytes(esp.get(..4)?.try_into().ok()?);
    let number = u32::from_be_bytes(esp.get(4..8)?.try_into().ok()?);
    Some(Found {
        spi,
        number,
        from: 14 + header,
        end: 14 + end,
    })
}

/// Returns whether the IP header of a frame says that it carries ESP; the packet may be a fragment or cut.
pub fn is_esp(frame: &[u8]) -> bool {
    match frame.get(12..14) {
        Some([0x08, 0x00]) => frame.get(23) == Some(&PROTOCOL_ESP),
        Some([0x86, 0xdd]) => frame.get(20) == Some(&PROTOCOL_ESP),
        _ => false,
    }
}

/// Returns the inner packet of a decrypted payload; None if the trailer violates RFC 4303 2.4 or the IP version
/// differs.
pub fn inner(payload: &[u8]) -> Option<&[u8]> {
    let [rest @ .., padding, next] = payload else {
        return None;
    };
    let length = rest.len().checked_sub(usize::from(*padding))?;
    let (inner, pad) = rest.split_at(length);
    let counted = pad.iter().zip(1u8..).all(|(&byte, expected)| byte == expected);
    let version = inner.first()? >> 4;
    let fits = (*next, version) == (NEXT_IPV4, 4) || (*next, version) == (NEXT_IPV6, 6);
    (counted && fits).then_some(inner)
}
