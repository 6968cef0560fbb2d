// SPDX-License-Identifier: Apache-2.0
//! The frames of noise: traffic in addition to the streams, whose packets the user gave. They are sent in turn.

use base64::Engine;

use crate::failure::{Failure, Outcome};
use crate::frame::octets::{ETHERNET, PROTOCOL_UDP, SHORTEST, UDP, be16, fold, parse_mac, sum};
use crate::protocol::Noise;

/// Largest number of packets of one noise.
pub const PACKETS: usize = 4096;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_IPV6: [u8; 2] = [0x86, 0xdd];

/// Shift of the number of a part of a noise in the number of a round, so that no two CPUs send the same packet.
const PART_SHIFT: u32 = 48;
const COUNTER: usize = 8;

/// The place of the number that makes each packet of each round another one.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    /// Offset in the frame.
    pub at: usize,
    /// The number of round 0: that of the part of the noise.
    pub first: u64,
}

/// Ethernet frames without FCS, padded to the minimum length of Ethernet.
#[derive(Debug)]
pub struct RawFrames {
    frames: Vec<Vec<u8>>,
    counter: Option<Counter>,
    /// Offset of each frame's UDP checksum; None if it has none.
    checksums: Vec<Option<usize>>,
}

impl RawFrames {
    /// Makes the frames of one part of a noise. Fails if one of its packets is not IPv4 or IPv6, or has no room for the
    /// counter; the message says which one.
    pub fn new(noise: &Noise, part: u64) -> Outcome<Self> {
        let wrong =
            |message: String, hint: &str| Err(Failure::new(format!("noise {}: {message}", noise.id), hint));
        if !(1..=PACKETS).contains(&noise.packets.len()) {
            return wrong(
                format!("{} packets, expected 1 to {PACKETS}", noise.packets.len()),
                "they leave in turn, again and again",
            );
        }
        let ends = [parse_mac(&noise.dst_mac)?, parse_mac(&noise.src_mac)?].concat();
        let mut frames = Vec::new();
        for (place, text) in noise.packets.iter().enumerate() {
            let Ok(packet) = base64::engine::general_purpose::STANDARD.decode(text) else {
                return wrong(format!("packet {place} is not base64"), "");
            };
            let ethertype = match packet.first().map(|first| first >> 4) {
                Some(4) if packet.len() >= 20 => ETHERTYPE_IPV4,
                Some(6) if packet.len() >= 40 => ETHERTYPE_IPV6,
                _ => {
                    return wrong(
                        format!("packet {place} of {} bytes is not IPv4 or IPv6", packet.len()),
                        "a packet begins with its IP header; the Ethernet header is added",
                    );
                }
            };
            if let Some(at) = noise.counter_at.filter(|&at| !has_room(&packet, at)) {
                return wrong(
                    format!(
                        "packet {place} of {} bytes has no room for a counter at {at}",
                        packet.len()
                    ),
                    "counter_at: an even number of bytes, behind the IP header and the UDP checksum",
                );
            }
            let mut frame = [&ends[..], &ethertype, &packet].concat();
            frame.resize(frame.len().max(SHORTEST), 0);
            frames.push(frame);
        }
        let counter = noise.counter_at.map(|at| Counter {
            at: ETHERNET + at,
            first: part << PART_SHIFT,
        });
        Ok(RawFrames {
            counter,
            ..RawFrames::of(frames)
        })
    }

    /// Takes whole frames that repeat unchanged.
    pub fn of(frames: Vec<Vec<u8>>) -> Self {
        RawFrames {
            checksums: frames.iter().map(|frame| checksum_at(frame)).collect(),
            counter: None,
            frames,
        }
    }

    pub fn all(&self) -> &[Vec<u8>] {
        &self.frames
    }

    pub fn counter(&self) -> Option<Counter> {
        self.counter
    }

    /// Returns the offset of the UDP checksum of each frame; None for a frame without one.
    pub fn checksums(&self) -> &[Option<usize>] {
        &self.checksums
    }

    pub fn longest(&self) -> &[u8] {
        self.frames
            .iter()
            .map(Vec::as_slice)
            .max_by_key(|frame| frame.len())
            .unwrap_or_default()
    }

    /// Copies frame `index` to the start of the buffer; returns its length.
    pub fn write(&self, buffer: &mut [u8], index: u64) -> usize {
        let packets = self.frames.len() as u64;
        let place = (index % packets) as usize;
        let frame = &self.frames[place];
        buffer[..frame.len()].copy_from_slice(frame);
        if let Some(counter) = self.counter {
            count(buffer, counter, index / packets, self.checksums[place]);
        }
        frame.len()
    }
}

/// Returns whether a packet has room for a counter behind its IP header and, in UDP, behind the UDP header.
fn has_room(packet: &[u8], at: usize) -> bool {
    let header = ip_header(packet);
    let udp = if is_udp(packet) { UDP } else { 0 };
    at % 2 == 0 && at >= header + udp && at.checked_add(COUNTER).is_some_and(|end| end <= packet.len())
}

fn ip_header(packet: &[u8]) -> usize {
    if packet[0] >> 4 == 6 {
        40
    } else {
        usize::from(packet[0] & 15) * 4
    }
}

fn is_udp(packet: &[u8]) -> bool {
    packet[if packet[0] >> 4 == 6 { 6 } else { 9 }] == PROTOCOL_UDP
}

/// Returns the offset of the UDP checksum in a frame; None if it is not UDP, or if IPv4 sends it without a checksum.
fn checksum_at(frame: &[u8]) -> Option<usize> {
    let packet = &frame[ETHERNET..];
    let at = ETHERNET + ip_header(packet) + 6;
    (is_udp(packet) && at + 2 <= frame.len() && be16(frame, at) != 0).then_some(at)
}

/// XORs the counter's place in a frame with the number of a round, and corrects the checksum (RFC 1624). The XDP program
/// does the same (bpf/send.bpf.c).
fn count(frame: &mut [u8], counter: Counter, round: u64, checksum_at: Option<usize>) {
    let place = counter.at..counter.at + COUNTER;
    let number = (counter.first ^ round).to_be_bytes();
    let before = sum(&frame[place.clone()]);
    for (byte, with) in frame[place.clone()].iter_mut().zip(number) {
        *byte ^= with;
    }
    let Some(at) = checksum_at else { return };
    let words = (COUNTER / 2) as u64 * 0xffff;
    let total = u64::from(!be16(frame, at)) + (words - before) + sum(&frame[place]);
    let checksum = match !fold(total) {
        0 => 0xffff, // 0 would mean "no checksum" (RFC 768)
        checksum => checksum,
    };
    frame[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(packets: &[&[u8]]) -> Noise {
        let encoded: Vec<String> = packets
            .iter()
            .map(|packet| base64::engine::general_purpose::STANDARD.encode(packet))
            .collect();
        serde_json::from_value(
            serde_json::json!({"id": 9, "from": "west", "src_mac": "02:00:00:00:00:01",
            "dst_mac": "02:00:00:00:00:02", "packets": encoded}),
        )
        .unwrap()
    }

    /// Packets leave in turn, with the EtherType of their IP version, and short ones are padded.
    #[test]
    fn packets_leave_in_turn() {
        let (four, six) = ([0x45; 20], [0x60; 100]);
        let frames = RawFrames::new(&noise(&[&four, &six]), 0).unwrap();
        let mut buffer = frames.longest().to_vec();
        assert_eq!(buffer.len(), 114);
        for index in 0..4 {
            let length = frames.write(&mut buffer, index);
            let (kind, expected, whole) = if index % 2 == 0 {
                ([8, 0], &four[..], 60)
            } else {
                ([0x86, 0xdd], &six[..], 114)
            };
            assert_eq!(length, whole);
            assert_eq!(
                buffer[..14],
                [[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1].as_slice(), &kind].concat()
            );
            assert_eq!(&buffer[14..14 + expected.len()], expected);
        }
    }

    /// Bytes that are no IP packet are refused with their index.
    #[test]
    fn nonsense_is_refused() {
        for (packets, words) in [
            (vec![], "0 packets"),
            (vec![&[0x45; 20][..], &[0x45; 19]], "packet 1 of 19 bytes"),
            (vec![&[0x08; 60][..]], "packet 0 of 60 bytes is not"),
        ] {
            let failure = RawFrames::new(&noise(&packets), 0).unwrap_err();
            assert!(failure.message.contains(words), "{failure}");
        }
    }

    /// A UDP packet of 70 bytes: IPv4 without checksum, or IPv6 with a right one.
    fn udp(version: u8) -> Vec<u8> {
        let mut packet: Vec<u8> = (0..70).map(|n| n * 3).collect();
        packet[0] = if version == 4 { 0x45 } else { 0x60 };
        let (header, protocol_at) = if version == 4 { (20, 9) } else { (40, 6) };
        packet[protocol_at] = PROTOCOL_UDP;
        packet[header + 6..header + 8].fill(0);
        if version == 6 {
            let checksum = !fold(udp_sum(&packet));
            packet[46..48].copy_from_slice(&checksum.to_be_bytes());
        }
        packet
    }

    /// Adds up the pseudo header and the UDP datagram of an IPv6 packet.
    fn udp_sum(packet: &[u8]) -> u64 {
        sum(&packet[8..]) + u64::from(PROTOCOL_UDP) + (packet.len() - 40) as u64
    }

    /// Packets of two rounds, and of two parts of a noise, differ in the counter alone, and checksums stay right.
    #[test]
    fn no_round_repeats_a_packet() {
        for (version, at) in [(4, 28), (6, 48)] {
            let packet = udp(version);
            let asked = Noise {
                counter_at: Some(at),
                ..noise(&[&packet, &packet])
            };
            let mut seen = Vec::new();
            for (part, index) in [(0, 0), (0, 2), (0, 5), (0, 2 << 16), (1, 0), (1, 2)] {
                let frames = RawFrames::new(&asked, part).unwrap();
                let mut buffer = frames.longest().to_vec();
                let length = frames.write(&mut buffer, index);
                let made = &buffer[ETHERNET..length];
                if (part, index) == (0, 0) {
                    assert_eq!(made, packet, "the first round is as given");
                }
                if version == 6 {
                    assert_eq!(fold(udp_sum(made)), 0xffff, "part {part}, frame {index}");
                }
                let mut rest = made.to_vec();
                let counter: Vec<u8> = rest.splice(at..at + COUNTER, []).collect();
                assert!(!seen.contains(&counter), "part {part}, frame {index}");
                seen.push(counter);
                let mut given = packet.clone();
                given.splice(at..at + COUNTER, []);
                if version == 6 {
                    rest[46..48].fill(0);
                    given[46..48].fill(0);
                }
                assert_eq!(rest, given);
            }
        }
    }

    /// A counter that would change a header, that is at an odd place or that ends behind the packet is refused.
    #[test]
    fn a_counter_without_room_is_refused() {
        for (version, at) in [(4, 26), (4, 29), (4, 64), (4, usize::MAX - 1), (6, 46), (6, 64)] {
            let asked = Noise {
                counter_at: Some(at),
                ..noise(&[&udp(version)])
            };
            let failure = RawFrames::new(&asked, 0).unwrap_err();
            assert!(failure.message.contains("no room for a counter"), "{failure}");
        }
    }
}
