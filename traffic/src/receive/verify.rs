// SPDX-License-Identifier: Apache-2.0
//! The verdict on a received frame: whether it belongs to this trial, and whether every byte is as it was sent.
//!
//! Routers may change MAC addresses, TTL and DSCP, and NAT may change the addresses, if the checksums are updated. All
//! other bytes must be as sent. A frame with any other difference is *corrupted* if it can be recognised as one of this
//! run, and else *foreign*. It is recognised by the magic number together with the stream's id, or by destination address
//! and UDP port; if its checksums are right, only by all of them. Frames of another run or of an earlier trial, and
//! fragments without a UDP header, are foreign. A frame that the interface merged from several
//! (GRO) or to which a VLAN tag was added is corrupted: no such frame was sent.

use crate::frame::flows::Flows;
use crate::frame::headers::Place;
use crate::frame::octets::{ETHERNET, PROTOCOL_TCP, PROTOCOL_UDP, SHORTEST, be16, fold, sum};
use crate::frame::template::Template;
use crate::frame::test_header::{NUMBER_MASK, RunKey, TEST_HEADER, TestHeader, pattern};
use crate::protocol::Stream;
use crate::wire::RxFrame;

/// A kind of frame of a stream, described from its IP header on, because routers may remove and add VLAN tags.
#[derive(Debug, PartialEq, Eq)]
struct Shape {
    ip_length: usize,
    /// Offsets from the IP header.
    l4: usize,
    payload: usize,
    tcp: bool,
    pattern_sum: u64,
}

/// The frames of one stream as they must arrive at its port.
#[derive(Debug)]
pub struct Expected {
    stream: u16,
    ipv6: bool,
    shapes: Vec<Shape>,
    /// Offsets at which a test header may be in a frame.
    payloads: Vec<usize>,
    /// Largest number of VLAN tags that a frame may have.
    tags: usize,
    /// True if all are RFC 2544 test frames, with the same payload offset and without tags.
    plain: bool,
    longest: usize,
    pattern: Vec<u8>,
    flows: Flows,
    dst_ports: Vec<u16>,
    key: RunKey,
    first_sequence: u64,
    sequences: u64,
}

/// The verdict on a frame.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// `stream` is an index into the expected streams; `number` counts from 0 within the trial.
    Intact {
        stream: usize,
        number: u64,
        time: u64,
    },
    Corrupted {
        stream: usize,
        number: Option<u64>,
    },
    Foreign,
}

impl Expected {
    /// Describes the frames of a stream, which have at most `sequences` sequence numbers from `first_sequence` on.
    pub fn new(
        stream: &Stream,
        template: &Template,
        key: RunKey,
        first_sequence: u64,
        sequences: u64,
    ) -> Self {
        let parts = template.parts();
        let mut shapes: Vec<Shape> = Vec::new();
        let (mut payloads, mut dst_ports) = (Vec::new(), Vec::new());
        for variant in parts.variants {
            let place = variant.place;
            let shape = Shape {
                ip_length: variant.bytes.len() - place.l3,
                l4: place.l4 - place.l3,
                payload: place.payload - place.l3,
                tcp: place.tcp,
                pattern_sum: sum(&variant.bytes[place.payload + TEST_HEADER..]),
            };
            payloads.extend([place.payload, ETHERNET + shape.payload]);
            dst_ports.push(be16(&variant.bytes, place.l4 + 2));
            if !shapes.contains(&shape) {
                shapes.push(shape);
            }
        }
        payloads.sort_unstable();
        payloads.dedup();
        dst_ports.sort_unstable();
        dst_ports.dedup();
        let longest = template.bytes().len();
        Expected {
            stream: stream.id,
            ipv6: parts.ipv6,
            shapes,
            plain: stream.headers.is_empty(),
            tags: if parts.variants.iter().any(|variant| variant.place.l3 > ETHERNET) {
                2
            } else {
                0
            },
            payloads,
            longest,
            pattern: pattern(longest),
            flows: template.flows(),
            dst_ports,
            key,
            first_sequence,
            sequences,
        }
    }

    pub fn stream(&self) -> u16 {
        self.stream
    }

    pub fn ipv6(&self) -> bool {
        self.ipv6
    }

    pub fn plain(&self) -> bool {
        self.plain
    }

    /// Returns, for each kind of frame, its length in bytes without VLAN tags and FCS, and the sum of its pattern.
    pub fn sizes(&self) -> impl ExactSizeIterator<Item = (usize, u64)> + '_ {
        self.shapes
            .iter()
            .map(|shape| (ETHERNET + shape.ip_length, shape.pattern_sum))
    }

    pub fn first_sequence(&self) -> u64 {
        self.first_sequence
    }

    pub fn sequences(&self) -> u64 {
        self.sequences
    }

    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Finds a valid test header of this run and this stream; returns the header and its offset.
    fn header(&self, bytes: &[u8]) -> Option<(TestHeader, usize)> {
        self.payloads.iter().find_map(|&at| {
            let header = TestHeader::read(bytes.get(at..at + TEST_HEADER)?);
            let ours = header.magic == self.key.magic
                && header.stream == self.stream
                && header.check == self.key.check(header.stream, header.sequence, header.time);
            ours.then_some((header, at))
        })
    }

    /// Returns the end of the packet according to its IP header; None if the lengths or the IPv4 header are wrong, or
    /// if the packet is a fragment.
    fn sound(&self, bytes: &[u8], place: Place) -> Option<usize> {
        let ip = &bytes[place.l3..];
        let end = place.l3
            + if place.ipv6 {
                40 + usize::from(be16(ip, 4))
            } else {
                usize::from(be16(ip, 2))
            };
        // A short frame from which a router removed a VLAN tag may be padded.
        let padded = self.tags > 0 && bytes.len() <= SHORTEST && end <= bytes.len();
        if place.ipv6 != self.ipv6 || !(end == bytes.len() || padded) || place.payload > end {
            return None;
        }
        if !place.ipv6 {
            // It must not be a fragment, nor the first of several fragments.
            let whole = be16(ip, 6) & 0x3fff == 0;
            if !whole || fold(sum(&ip[..place.l4 - place.l3])) != 0xffff {
                return None;
            }
        }
        let udp_length = usize::from(be16(bytes, place.l4 + 4));
        (place.tcp || udp_length == end - place.l4).then_some(end)
    }

    /// Adds up pseudo header and UDP or TCP header. If the checksum is correct, this sum and that of the payload fold
    /// to 0xffff.
    fn headers_sum(bytes: &[u8], place: Place, end: usize) -> u64 {
        let addresses = place.l3 + if place.ipv6 { 8 } else { 12 };
        let octets = if place.ipv6 { 32 } else { 8 };
        let protocol = if place.tcp { PROTOCOL_TCP } else { PROTOCOL_UDP };
        sum(&bytes[addresses..addresses + octets])
            + u64::from(protocol)
            + (end - place.l4) as u64
            + sum(&bytes[place.l4..place.payload])
    }

    /// Returns whether every byte is as sent. The test header, at `payload`, has been checked already.
    fn unhurt(&self, frame: &RxFrame, payload: usize) -> bool {
        let bytes = frame.bytes;
        if (frame.vlan_tagged && self.tags == 0) || bytes.len() != frame.wire_length {
            return false;
        }
        let Some(place) = Place::of(bytes, self.tags).filter(|place| place.payload == payload) else {
            return false;
        };
        let Some(end) = self.sound(bytes, place) else {
            return false;
        };
        let Some(shape) = self.shapes.iter().find(|shape| {
            (shape.ip_length, shape.l4, shape.payload, shape.tcp)
                == (
                    end - place.l3,
                    place.l4 - place.l3,
                    place.payload - place.l3,
                    place.tcp,
                )
        }) else {
            return false;
        };
        let rest = &bytes[payload + TEST_HEADER..end];
        if rest != &self.pattern[..rest.len()] {
            return false;
        }
        // The pattern is as sent, so its sum is known, and only the headers are added up.
        let total = Self::headers_sum(bytes, place, end)
            + sum(&bytes[payload..payload + TEST_HEADER])
            + shape.pattern_sum;
        let checksum = be16(bytes, place.checksum());
        frame.checksum_pending || ((place.tcp || checksum != 0) && fold(total) == 0xffff)
    }

    fn addressed_here(&self, bytes: &[u8]) -> bool {
        let octets = if self.ipv6 { 16 } else { 4 };
        self.shapes.iter().any(|shape| {
            let end = ETHERNET + if self.ipv6 { 40 } else { 20 };
            let l4 = ETHERNET + shape.l4;
            bytes.len() >= l4 + 4
                && self.dst_ports.contains(&be16(bytes, l4 + 2))
                && self.flows.reach(&bytes[end - octets..end])
        })
    }

    /// Returns whether a frame without a valid test header is a damaged frame of this stream.
    ///
    /// The magic number alone is no evidence: one in 65,536 frames of others has it by chance.
    fn recognises(&self, frame: &RxFrame) -> bool {
        let bytes = frame.bytes;
        let (named, addressed) = (self.named(bytes), self.addressed_here(bytes));
        // An undamaged frame is foreign, even if its addresses are those of the stream. But a router that damages a test
        // header and then calculates the checksum again makes a frame that is undamaged in this sense.
        if self.healthy(frame) {
            named && addressed
        } else {
            named || addressed
        }
    }

    /// Returns whether a frame's lengths and checksums are right, whatever is in it.
    fn healthy(&self, frame: &RxFrame) -> bool {
        let bytes = frame.bytes;
        bytes.len() == frame.wire_length
            && Place::of(bytes, self.tags).is_some_and(|place| {
                self.sound(bytes, place).is_some_and(|end| {
                    let total = || Self::headers_sum(bytes, place, end) + sum(&bytes[place.payload..end]);
                    frame.checksum_pending || fold(total()) == 0xffff
                })
            })
    }

    /// Returns whether a frame has the run's magic number and this stream's id at a place where a test header may be.
    fn named(&self, bytes: &[u8]) -> bool {
        self.payloads.iter().any(|&at| {
            bytes
                .get(at..at + 4)
                .is_some_and(|bytes| be16(bytes, 0) == self.key.magic && be16(bytes, 2) == self.stream)
        })
    }

    /// Returns whether a damaged frame has this stream's id at a place where a test header may be.
    fn claimed_by(&self, bytes: &[u8]) -> bool {
        self.payloads.iter().any(|&at| {
            bytes
                .get(at + 2..at + 4)
                .is_some_and(|bytes| be16(bytes, 0) == self.stream)
        })
    }
}

/// Judges one frame against the streams that arrive at the port.
pub fn judge(streams: &[Expected], frame: &RxFrame) -> Verdict {
    for (index, expected) in streams.iter().enumerate() {
        let Some((header, payload)) = expected.header(frame.bytes) else {
            continue;
        };
        let number = header.sequence.wrapping_sub(expected.first_sequence) & NUMBER_MASK;
        if number >= expected.sequences {
            return Verdict::Foreign; // it belongs to an earlier trial
        }
        return if expected.unhurt(frame, payload) {
            Verdict::Intact {
                stream: index,
                number,
                time: header.time,
            }
        } else {
            Verdict::Corrupted {
                stream: index,
                number: Some(number),
            }
        };
    }
    // If a damaged frame may belong to several streams, the stream's id in it decides.
    let recognised: Vec<usize> = (0..streams.len())
        .filter(|&i| streams[i].recognises(frame))
        .collect();
    match recognised
        .iter()
        .find(|&&i| streams[i].claimed_by(frame.bytes))
        .or(recognised.first())
    {
        Some(&stream) => Verdict::Corrupted { stream, number: None },
        None => Verdict::Foreign,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::template::Template;
    use crate::protocol::sample::stream;

    const FIRST: u64 = 1000;

    fn setting(version: u8, key: RunKey) -> (Template, Vec<Expected>) {
        let asked = stream(version, &[84, 594]);
        let template = Template::new(&asked, key).unwrap();
        let expected = Expected::new(&asked, &template, key, FIRST, 100);
        (template, vec![expected])
    }

    fn received(bytes: &[u8]) -> RxFrame<'_> {
        RxFrame {
            bytes,
            wire_length: bytes.len(),
            at_ns: 0,
            checksum_pending: false,
            vlan_tagged: false,
        }
    }

    fn frame(template: &Template, index: u64, sequence: u64) -> Vec<u8> {
        let mut buffer = template.bytes().to_vec();
        let length = template.write(&mut buffer, index, sequence, 77);
        buffer.truncate(length);
        buffer
    }

    /// A frame is intact if only MAC addresses, TTL and the IPv4 checksum were changed, as by a router.
    #[test]
    fn routed_frame_is_intact() {
        let (template, expected) = setting(4, RunKey::new(1, 2));
        let mut bytes = frame(&template, 0, FIRST + 5);
        bytes[..12].fill(0xaa);
        bytes[22] -= 1;
        let check = be16(&bytes, 24) + 0x100;
        bytes[24..26].copy_from_slice(&check.to_be_bytes());
        let intact = Verdict::Intact {
            stream: 0,
            number: 5,
            time: 77,
        };
        assert_eq!(judge(&expected, &received(&bytes)), intact);
    }

    /// One flipped bit anywhere in the IP payload makes the frame corrupted.
    #[test]
    fn every_flipped_bit_is_corruption() {
        for (version, from) in [(4, 34), (6, 54)] {
            let (template, expected) = setting(version, RunKey::new(1, 2));
            for index in 0..2 {
                let bytes = frame(&template, index, FIRST);
                for bit in from * 8..bytes.len() * 8 {
                    let mut hurt = bytes.clone();
                    hurt[bit / 8] ^= 1 << (bit % 8);
                    let verdict = judge(&expected, &received(&hurt));
                    assert!(
                        matches!(verdict, Verdict::Corrupted { stream: 0, .. }),
                        "version {version}, bit {bit}: {verdict:?}"
                    );
                }
            }
        }
    }

    /// Cut, lengthened, merged, tagged and zero-checksum frames are corrupted.
    #[test]
    fn other_damage_is_corruption() {
        let (template, expected) = setting(4, RunKey::new(1, 2));
        let bytes = frame(&template, 1, FIRST);
        let mut longer = bytes.clone();
        longer.extend([0; 4]);
        let mut unchecked = bytes.clone();
        unchecked[40..42].fill(0);
        let mut cut = received(&bytes);
        cut.wire_length = 3000;
        let mut tagged = received(&bytes);
        tagged.vlan_tagged = true;
        let frames = [
            received(&bytes[..200]),
            received(&longer),
            received(&unchecked),
            cut,
            tagged,
        ];
        for (case, frame) in frames.iter().enumerate() {
            assert!(
                matches!(judge(&expected, frame), Verdict::Corrupted { .. }),
                "case {case}"
            );
        }
    }

    /// Returns the frame with `bytes` as its payload, to UDP port `port`, and with the right checksum.
    fn healthy_frame(template: &Template, port: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = frame(template, 0, FIRST);
        bytes[36..38].copy_from_slice(&port.to_be_bytes());
        bytes[42..42 + payload.len()].copy_from_slice(payload);
        bytes[40..42].fill(0);
        let place = Place::of(&bytes, 0).unwrap();
        let total = Expected::headers_sum(&bytes, place, bytes.len()) + sum(&bytes[place.payload..]);
        bytes[40..42].copy_from_slice(&(!fold(total)).to_be_bytes());
        bytes
    }

    /// A frame of others that has this run's magic number by chance is foreign, whole or damaged. The magic number counts
    /// together with the stream's id or its addresses, and in a frame with the right checksum only with both.
    #[test]
    fn the_magic_number_alone_is_no_evidence() {
        let key = RunKey::new(1, 2);
        let (template, expected) = setting(4, key);
        let [high, low] = key.magic.to_be_bytes();
        let (ours, others) = ([high, low, 0, 3, 9], [high, low, 0, 4, 9]);
        let (our_port, another) = (7, 4500);
        for (port, payload, whole_is_ours, damaged_is_ours) in [
            (another, others, false, false),
            (another, ours, false, true),
            (our_port, others, false, true),
            (our_port, ours, true, true),
        ] {
            let bytes = healthy_frame(&template, port, &payload);
            let mut pending = received(&bytes);
            pending.checksum_pending = true;
            let mut damaged = bytes.clone();
            damaged[60] ^= 1;
            for (received, is_ours) in [
                (pending, whole_is_ours),
                (received(&bytes), whole_is_ours),
                (received(&damaged), damaged_is_ours),
            ] {
                let verdict = judge(&expected, &received);
                let is_corrupted = matches!(verdict, Verdict::Corrupted { number: None, .. });
                assert_eq!(is_corrupted, is_ours, "port {port}, {payload:?}: {verdict:?}");
            }
        }
    }

    /// Frames of another run, of an earlier trial, and of other programs are foreign; short ones do not panic.
    #[test]
    fn others_are_foreign() {
        let (template, expected) = setting(4, RunKey::new(1, 2));
        let (other, _) = setting(4, RunKey::new(7, 2));
        let mine = frame(&template, 0, FIRST);
        assert_eq!(
            judge(&expected, &received(&frame(&other, 0, FIRST))),
            Verdict::Foreign
        );
        assert_eq!(
            judge(&expected, &received(&frame(&template, 0, FIRST - 1))),
            Verdict::Foreign
        );
        assert_eq!(
            judge(&expected, &received(&frame(&template, 0, FIRST + 100))),
            Verdict::Foreign
        );
        assert_eq!(judge(&expected, &received(&[0x5a; 300])), Verdict::Foreign);
        for length in 0..38 {
            assert_eq!(judge(&expected, &received(&mine[..length])), Verdict::Foreign);
        }
    }
}
