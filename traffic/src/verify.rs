// SPDX-License-Identifier: Apache-2.0
//! Is a received frame ours, and is every byte of it as it was sent?
//!
//! Routers may change MAC addresses, TTL and DSCP, and NAT the addresses (they mend the checksums then). All
//! the rest must be as sent: anything else is *corrupted* if the frame can be recognised as one of this run
//! (by the magic number, or by destination address and UDP port), and *foreign* if not. A frame of another run,
//! of an earlier trial, or a fragment without a UDP header is foreign. A frame the interface merged
//! from several (GRO) or tagged (VLAN) is corrupted: one frame of that length was never sent.

use crate::flows::Flows;
use crate::frame::{ETHERNET, NUMBER_MASK, RunKey, TEST_HEADER, Template, TestHeader, UDP, be16, fold, sum};
use crate::port::RxFrame;
use crate::protocol::Stream;

/// What one stream's frames look like at the port where they arrive.
#[derive(Debug)]
pub struct Expected {
    stream: u16,
    ipv6: bool,
    payload: usize,
    lengths: Vec<usize>,
    pattern: Vec<u8>,
    /// Sum of the pattern for each of `lengths`.
    pattern_sums: Vec<u64>,
    flows: Flows,
    dst_port: u16,
    key: RunKey,
    first_sequence: u64,
    sequences: u64,
}

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
    /// `sequences`: how many numbers the trial can use at most, from `first_sequence` on.
    pub fn new(
        stream: &Stream,
        template: &Template,
        key: RunKey,
        first_sequence: u64,
        sequences: u64,
    ) -> Self {
        let lengths = template.lengths();
        let ipv6 = stream.ip_version == 6;
        let payload = ETHERNET + if ipv6 { 40 } else { 20 } + UDP;
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let pattern = crate::frame::pattern(longest.saturating_sub(payload + TEST_HEADER));
        let pattern_sums = lengths
            .iter()
            .map(|length| sum(&pattern[..length - payload - TEST_HEADER]))
            .collect();
        Expected {
            stream: stream.id,
            ipv6,
            payload,
            lengths,
            pattern,
            pattern_sums,
            flows: template.flows(),
            dst_port: stream.dst_port,
            key,
            first_sequence,
            sequences,
        }
    }

    pub fn longest(&self) -> usize {
        self.lengths.iter().copied().max().unwrap_or(0)
    }

    fn ip_header(&self) -> usize {
        self.payload - UDP - ETHERNET
    }

    /// The header, if it is one that this run wrote for this stream.
    fn header(&self, bytes: &[u8]) -> Option<TestHeader> {
        let header = TestHeader::read(bytes.get(self.payload..self.payload + TEST_HEADER)?);
        (header.magic == self.key.magic
            && header.stream == self.stream
            && header.check == self.key.check(header.stream, header.sequence, header.time))
        .then_some(header)
    }

    /// Sum over pseudo header, UDP header and test header: what a correct checksum turns to 0xffff with the rest.
    fn headers_sum(&self, bytes: &[u8], end: usize) -> u64 {
        let addresses = if self.ipv6 { ETHERNET + 8 } else { ETHERNET + 12 };
        let udp = self.payload - UDP;
        sum(&bytes[addresses..ETHERNET + self.ip_header()])
            + 17
            + (end - udp) as u64
            + sum(&bytes[udp..self.payload])
    }

    /// Whether IP and UDP headers belong to a frame that ends where this one does.
    fn well_formed(&self, bytes: &[u8]) -> bool {
        let udp = self.payload - UDP;
        if bytes.len() < self.payload + TEST_HEADER || usize::from(be16(bytes, udp + 4)) != bytes.len() - udp
        {
            return false;
        }
        let ip = &bytes[ETHERNET..];
        if self.ipv6 {
            be16(bytes, 12) == 0x86dd
                && ip[0] >> 4 == 6
                && ip[6] == 17
                && usize::from(be16(ip, 4)) == ip.len() - 40
        } else {
            be16(bytes, 12) == 0x0800
                && ip[0] == 0x45
                && ip[9] == 17
                && usize::from(be16(ip, 2)) == ip.len()
                && be16(ip, 6) & 0x3fff == 0 // neither a fragment nor the first of several
                && fold(sum(&ip[..20])) == 0xffff
        }
    }

    /// Whether every byte is as sent, given that its test header is.
    fn unhurt(&self, frame: &RxFrame) -> bool {
        let bytes = frame.bytes;
        let Some(size) = self.lengths.iter().position(|&length| length == bytes.len()) else {
            return false;
        };
        if frame.vlan_tagged || bytes.len() != frame.wire_length || !self.well_formed(bytes) {
            return false;
        }
        let rest = &bytes[self.payload + TEST_HEADER..];
        if rest != &self.pattern[..rest.len()] {
            return false;
        }
        // The pattern is as sent, so its sum is known and only the headers are added up.
        let total = self.headers_sum(bytes, bytes.len())
            + sum(&bytes[self.payload..self.payload + TEST_HEADER])
            + self.pattern_sums[size];
        let checksum = be16(bytes, self.payload - 2);
        frame.checksum_pending || (checksum != 0 && fold(total) == 0xffff)
    }

    fn addressed_here(&self, bytes: &[u8]) -> bool {
        let end = ETHERNET + self.ip_header();
        if bytes.len() < end + 4 || be16(bytes, end + 2) != self.dst_port {
            return false;
        }
        let octets = if self.ipv6 { 16 } else { 4 };
        self.flows.reach(&bytes[end - octets..end])
    }

    /// For a frame that is not intact: is it one of this stream, damaged?
    fn recognises(&self, frame: &RxFrame) -> bool {
        let bytes = frame.bytes;
        let magic = bytes.len() >= self.payload + 2 && be16(bytes, self.payload) == self.key.magic;
        if magic {
            return true;
        }
        // A healthy frame without our magic is somebody else's, wherever it is addressed.
        let healthy = self.well_formed(bytes)
            && bytes.len() == frame.wire_length
            && fold(self.headers_sum(bytes, bytes.len()) + sum(&bytes[self.payload..])) == 0xffff;
        !healthy && self.addressed_here(bytes)
    }
}

/// Judges one frame against the streams that arrive at the port.
pub fn judge(streams: &[Expected], frame: &RxFrame) -> Verdict {
    for (index, expected) in streams.iter().enumerate() {
        let Some(header) = expected.header(frame.bytes) else {
            continue;
        };
        let number = header.sequence.wrapping_sub(expected.first_sequence) & NUMBER_MASK;
        if number >= expected.sequences {
            return Verdict::Foreign; // of an earlier trial
        }
        return if expected.unhurt(frame) {
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
    let claimed = |expected: &Expected| {
        frame
            .bytes
            .get(expected.payload + 2..expected.payload + 4)
            .is_some_and(|bytes| be16(bytes, 0) == expected.stream)
    };
    // Where several streams could be meant, believe the stream number.
    let recognised: Vec<usize> = (0..streams.len())
        .filter(|&i| streams[i].recognises(frame))
        .collect();
    match recognised
        .iter()
        .find(|&&i| claimed(&streams[i]))
        .or(recognised.first())
    {
        Some(&stream) => Verdict::Corrupted { stream, number: None },
        None => Verdict::Foreign,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Template;
    use crate::frame::tests::stream;

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

    /// A frame as sent is intact, also after a router changed MAC addresses and TTL.
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

    /// One flipped bit anywhere in the IP payload, at any of its places, makes the frame corrupted.
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

    /// Frames of another run, of an earlier trial, and other people's are foreign, and short ones do not panic.
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
