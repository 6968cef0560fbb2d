// SPDX-License-Identifier: Apache-2.0
//! Test frames: Ethernet, IPv4 or IPv6, UDP, and an 18-byte header at the start of the UDP payload.
//!
//! ```text
//!  0       2        4                    10                   16      18
//!  | magic | stream | sequence (48 bit)  | tx time (48 bit)   | check | 18 19 1a …
//! ```
//! Everything is big-endian. The tx time is CLOCK_MONOTONIC in ns, modulo 2^48 (78 hours). Magic and check
//! depend on the run's key, so another run's frames are not taken for ours. The rest is a fixed pattern of
//! incrementing octets (after RFC 2544, appendix C), compared exactly.

use std::net::IpAddr;

use crate::failure::{Failure, Outcome};
use crate::flows::Flows;
use crate::header::{self, Header, Place};
use crate::protocol::Stream;

pub const ETHERNET: usize = 14;
pub const FCS: usize = 4;
pub const UDP: usize = 8;
pub const TEST_HEADER: usize = 18;
pub const NUMBER_MASK: u64 = (1 << 48) - 1;
pub const PROTOCOL_UDP: u8 = 17;
pub const PROTOCOL_TCP: u8 = 6;

pub type Mac = [u8; 6];

/// What makes this run's frames its own.
#[derive(Debug, Clone, Copy)]
pub struct RunKey {
    pub magic: u16,
    secret: u64,
}

/// Folds a 128-bit product: a cheap mixing step in which every input bit reaches every output bit.
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

impl RunKey {
    pub fn new(run_key: u64, instant: u64) -> Self {
        let secret = mix(run_key ^ 0x9e37_79b9_7f4a_7c15, instant | 1) ^ run_key.rotate_left(17);
        RunKey {
            magic: (mix(secret ^ 0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db) >> 24) as u16,
            secret,
        }
    }

    /// As the programs of bpf/ take it.
    pub fn parts(&self) -> crate::xdp::Key {
        crate::xdp::Key {
            secret: self.secret,
            magic: self.magic,
            unused: [0; 3],
        }
    }

    /// The check over magic, stream, sequence and time.
    pub fn check(&self, stream: u16, sequence: u64, time: u64) -> u16 {
        let first = u64::from(self.magic) << 48 | u64::from(stream) << 32 | sequence >> 16;
        let second = sequence << 48 | (time & NUMBER_MASK);
        let mixed = mix(
            first ^ self.secret ^ 0xe703_7ed1_a0b4_28db,
            second ^ self.secret.rotate_left(32) ^ 0x8ebc_6af0_9c88_c6e3,
        );
        (mixed ^ mixed >> 32 ^ mixed >> 16) as u16
    }
}

/// The test header as it was read from a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestHeader {
    pub magic: u16,
    pub stream: u16,
    pub sequence: u64,
    pub time: u64,
    pub check: u16,
}

pub fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn be48(bytes: &[u8], at: usize) -> u64 {
    u64::from(be16(bytes, at)) << 32 | u64::from(be16(bytes, at + 2)) << 16 | u64::from(be16(bytes, at + 4))
}

impl TestHeader {
    /// `bytes` starts at the UDP payload and holds at least 18 bytes.
    pub fn read(bytes: &[u8]) -> Self {
        TestHeader {
            magic: be16(bytes, 0),
            stream: be16(bytes, 2),
            sequence: be48(bytes, 4),
            time: be48(bytes, 10),
            check: be16(bytes, 16),
        }
    }
}

/// The Internet checksum's sum of big-endian 16-bit words (RFC 1071), not yet folded.
pub fn sum(bytes: &[u8]) -> u64 {
    let mut chunks = bytes.chunks_exact(2);
    let mut total: u64 = chunks.by_ref().map(|word| u64::from(be16(word, 0))).sum();
    if let [last] = chunks.remainder() {
        total += u64::from(*last) << 8;
    }
    total
}

pub fn fold(mut total: u64) -> u16 {
    while total >> 16 != 0 {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

/// The payload after the test header.
pub fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| (TEST_HEADER + i) as u8).collect()
}

pub fn parse_mac(text: &str) -> Outcome<Mac> {
    let parts: Vec<_> = text.split(':').map(|part| u8::from_str_radix(part, 16)).collect();
    let bytes: Result<Vec<u8>, _> = parts.into_iter().collect();
    bytes.ok().and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| {
        Failure::new(
            format!("'{text}' is not a MAC address"),
            "write six hexadecimal bytes, such as 02:00:00:00:00:01",
        )
    })
}

pub fn show_mac(mac: &[u8]) -> String {
    mac.iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<Vec<_>>()
        .join(":")
}

/// One kind of frame in a stream: its size and its headers.
#[derive(Debug)]
pub struct Variant {
    /// The whole frame without FCS; what changes from frame to frame is zero.
    pub bytes: Vec<u8>,
    pub place: Place,
    /// Of the first flow; flow p of a network adds p.
    pub src_port: u16,
    /// Sum of the IPv4 header's words that do not change from frame to frame.
    pub ip_sum: u64,
    /// The same for pseudo header, UDP or TCP header, and pattern.
    pub l4_sum: u64,
}

/// The frames of one stream, ready but for the fields that change with each.
#[derive(Debug)]
pub struct Template {
    variants: Vec<Variant>,
    /// Which variant frame k of a cycle is.
    order: Vec<u16>,
    ipv6: bool,
    stream: u16,
    key: RunKey,
    ports: u64,
    dont_fragment: bool,
    flows: Flows,
    /// Source and destination of every flow, one flow after the other as in the frame, and the sum of each.
    addresses: Vec<u8>,
    address_sums: Vec<u64>,
}

/// All that a stream's frames are made of, for those who make them elsewhere.
pub struct Parts<'a> {
    pub variants: &'a [Variant],
    pub order: &'a [u16],
    pub ipv6: bool,
    pub stream: u16,
    pub ports: u64,
    pub dont_fragment: bool,
    pub addresses: &'a [u8],
    pub address_sums: &'a [u64],
}

impl Variant {
    fn new(header: &Header, size: usize, protocol: u64) -> Self {
        let place = header.place;
        let length = size - FCS;
        let mut bytes = header.bytes.clone();
        let (ip_length, l4_length) = ((length - place.l3) as u16, (length - place.l4) as u16);
        let length_at = place.l3 + if place.ipv6 { 4 } else { 2 };
        let counted = if place.ipv6 { ip_length - 40 } else { ip_length };
        bytes[length_at..length_at + 2].copy_from_slice(&counted.to_be_bytes());
        if !place.tcp {
            bytes[place.l4 + 4..place.l4 + 6].copy_from_slice(&l4_length.to_be_bytes());
        }
        bytes.extend([0; TEST_HEADER]);
        bytes.extend(pattern(length - bytes.len()));
        Variant {
            place,
            src_port: be16(&bytes, place.l4),
            ip_sum: if place.ipv6 {
                0
            } else {
                sum(&bytes[place.l3..place.l4])
            },
            // The source port is added with each frame, as are the addresses and the test header.
            l4_sum: protocol + u64::from(l4_length) + sum(&bytes[place.l4 + 2..]),
            bytes,
        }
    }
}

impl Template {
    pub fn new(stream: &Stream, key: RunKey) -> Outcome<Self> {
        let wrong =
            |message: String, hint: &str| Failure::new(format!("stream {}: {message}", stream.id), hint);
        let ipv6 = match (stream.ip_version, stream.src, stream.dst) {
            (4, IpAddr::V4(_), IpAddr::V4(_)) => false,
            (6, IpAddr::V6(_), IpAddr::V6(_)) => true,
            (4 | 6, ..) => {
                return Err(wrong(
                    format!(
                        "src {} and dst {} are not IPv{}",
                        stream.src, stream.dst, stream.ip_version
                    ),
                    "give addresses of the stream's ip_version",
                ));
            }
            (other, ..) => return Err(wrong(format!("ip_version is {other}, expected 4 or 6"), "")),
        };
        let headers = header::of(stream).map_err(|failure| wrong(failure.message, &failure.hint))?;
        let order = crate::sizes::cycle(&stream.frames)
            .map_err(|failure| wrong(failure.message.clone(), &failure.hint))?;
        let flows = Flows::of(stream)?;
        for header in &headers {
            let first = be16(&header.bytes, header.place.l4);
            if stream.ports == 0 || u32::from(first) + u32::from(stream.ports) > 65_536 {
                return Err(wrong(
                    format!("{} ports from {first} on do not fit", stream.ports),
                    "source ports rotate upwards from src_port and must stay below 65536",
                ));
            }
        }
        // A sequence may name the same frame again and again: each is made once.
        let mut kinds: Vec<(usize, usize)> = Vec::new();
        let mut variants = Vec::new();
        let mut kind_of = Vec::new();
        for share in &stream.frames {
            let Some(header) = headers.get(share.header) else {
                return Err(wrong(
                    format!("header {} of {}", share.header, headers.len()),
                    "a frame's header is an index into headers",
                ));
            };
            let minimum = header.bytes.len() + TEST_HEADER + FCS;
            if !(minimum..=65_535).contains(&share.size) {
                return Err(wrong(
                    format!(
                        "frame size {} is out of range: an IPv{} test frame has {minimum} to 65535 bytes",
                        share.size, stream.ip_version
                    ),
                    "sizes count the 4-byte FCS; the smallest frame holds the headers and an 18-byte test header",
                ));
            }
            let kind = (share.size, share.header);
            let place = kinds.iter().position(|&known| known == kind).unwrap_or_else(|| {
                kinds.push(kind);
                let protocol = if header.place.tcp {
                    PROTOCOL_TCP
                } else {
                    PROTOCOL_UDP
                };
                variants.push(Variant::new(header, share.size, protocol.into()));
                kinds.len() - 1
            });
            kind_of.push(place as u16);
        }
        let addresses: Vec<Vec<u8>> = (0..flows.count).map(|flow| flows.addresses(flow)).collect();
        Ok(Template {
            order: order
                .into_iter()
                .map(|share| kind_of[usize::from(share)])
                .collect(),
            variants,
            ipv6,
            stream: stream.id,
            key,
            ports: stream.ports.into(),
            dont_fragment: stream.dont_fragment,
            flows,
            address_sums: addresses.iter().map(|pair| sum(pair)).collect(),
            addresses: addresses.concat(),
        })
    }

    /// The longest frame, with the fields that change left zero.
    pub fn bytes(&self) -> &[u8] {
        self.variants
            .iter()
            .map(|variant| variant.bytes.as_slice())
            .max_by_key(|bytes| bytes.len())
            .unwrap_or_default()
    }

    pub fn parts(&self) -> Parts<'_> {
        Parts {
            variants: &self.variants,
            order: &self.order,
            ipv6: self.ipv6,
            stream: self.stream,
            ports: self.ports,
            dont_fragment: self.dont_fragment,
            addresses: &self.addresses,
            address_sums: &self.address_sums,
        }
    }

    /// Bytes of frame `index`.
    pub fn length(&self, index: u64) -> usize {
        self.variant(index).bytes.len()
    }

    fn variant(&self, index: u64) -> &Variant {
        &self.variants[usize::from(self.order[(index % self.order.len() as u64) as usize])]
    }

    /// The addresses of the stream's frames.
    pub fn flows(&self) -> Flows {
        self.flows
    }

    /// Makes frame `index` of the stream in a buffer that began as a copy of `bytes()`; returns its length.
    ///
    /// Flows rotate with the index: first through networks or tunnels, then through the source ports.
    pub fn write(&self, buffer: &mut [u8], index: u64, sequence: u64, time: u64) -> usize {
        let variant = self.variant(index);
        if self.variants.len() > 1 {
            buffer[..variant.bytes.len()].copy_from_slice(&variant.bytes);
        }
        let Place { l3, l4, payload, .. } = variant.place;
        let count = u64::from(self.flows.count);
        let flow = (index % count) as usize;
        let port = variant.src_port + (index / count % self.ports) as u16;

        let width = self.addresses.len() / self.address_sums.len();
        let addresses_at = l3 + if self.ipv6 { 8 } else { 12 };
        buffer[addresses_at..addresses_at + width]
            .copy_from_slice(&self.addresses[flow * width..(flow + 1) * width]);
        let address_sum = self.address_sums[flow];
        if !self.ipv6 {
            // An identification is only meaningful where the frame may be fragmented (RFC 6864).
            let identification = if self.dont_fragment { 0 } else { index as u16 };
            let check = !fold(variant.ip_sum + address_sum + u64::from(identification));
            buffer[l3 + 4..l3 + 6].copy_from_slice(&identification.to_be_bytes());
            buffer[l3 + 10..l3 + 12].copy_from_slice(&check.to_be_bytes());
        }
        let header = &mut buffer[payload..payload + TEST_HEADER];
        header[..2].copy_from_slice(&self.key.magic.to_be_bytes());
        header[2..4].copy_from_slice(&self.stream.to_be_bytes());
        header[4..10].copy_from_slice(&sequence.to_be_bytes()[2..]);
        header[10..16].copy_from_slice(&time.to_be_bytes()[2..]);
        header[16..].copy_from_slice(&self.key.check(self.stream, sequence, time).to_be_bytes());
        let total = variant.l4_sum + address_sum + u64::from(port) + sum(header);
        let check = match !fold(total) {
            0 => 0xffff, // 0 would mean "no checksum" (RFC 768)
            check => check,
        };
        buffer[l4..l4 + 2].copy_from_slice(&port.to_be_bytes());
        let check_at = variant.place.checksum();
        buffer[check_at..check_at + 2].copy_from_slice(&check.to_be_bytes());
        variant.bytes.len()
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::protocol::FrameShare;

    pub fn stream(ip_version: u8, sizes: &[usize]) -> Stream {
        let (src, dst) = if ip_version == 6 {
            ("2001:2::2", "2001:2:0:8000::2")
        } else {
            ("198.18.0.2", "198.19.0.2")
        };
        Stream {
            id: 3,
            from: "west".into(),
            to: "east".into(),
            rate_fps: None,
            steps: Vec::new(),
            burst_frames: None,
            tag_at_s: None,
            gaps_over_s: None,
            frames: sizes
                .iter()
                .map(|&size| FrameShare {
                    size,
                    weight: 1,
                    header: 0,
                })
                .collect(),
            src_mac: "02:00:00:00:00:01".into(),
            dst_mac: "02:00:00:00:00:02".into(),
            ip_version,
            src: src.parse().unwrap(),
            dst: dst.parse().unwrap(),
            dont_fragment: false,
            ttl: 64,
            src_port: 49184,
            dst_port: 7,
            networks: 1,
            tunnels: 1,
            tunnel_bits: 0,
            ports: 1,
            headers: Vec::new(),
            seal: Vec::new(),
            open: Vec::new(),
            fault: None,
        }
    }

    /// The sum and fold agree with the worked example of RFC 1071, section 3.
    #[test]
    fn checksum_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(sum(&bytes), 0x2ddf0);
        assert_eq!(fold(sum(&bytes)), 0xddf2);
        assert_eq!(sum(&[0x12]), 0x1200);
    }

    /// The check of a well-known IPv4 header (Wikipedia's example) comes out as printed there.
    #[test]
    fn checksum_of_a_known_header() {
        let header = [
            0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7,
        ];
        assert_eq!(!fold(sum(&header)), 0xb861);
    }

    /// In every frame, of every size and flow, both checksums are right when computed from scratch.
    #[test]
    fn checksums_hold_in_every_frame() {
        for (version, networks, tunnels) in [(4, 7, 1), (6, 7, 1), (4, 1, 1000), (6, 1, 1000)] {
            let mut asked = stream(version, &[84, 85, 594, 1518]);
            asked.networks = networks;
            asked.tunnels = tunnels;
            asked.tunnel_bits = if version == 6 { 62 } else { 26 };
            asked.ports = 5;
            let template = Template::new(&asked, RunKey::new(1, 2)).unwrap();
            let mut buffer = template.bytes().to_vec();
            for index in 0..2500 {
                let length = template.write(&mut buffer, index, 1 << 40 | index, index * 977);
                let ip = &buffer[ETHERNET..length];
                let (header, addresses) = if version == 6 {
                    (40, &ip[8..40])
                } else {
                    (20, &ip[12..20])
                };
                if version == 4 {
                    assert_eq!(fold(sum(&ip[..20])), 0xffff, "IPv4 header of frame {index}");
                }
                let udp = &ip[header..];
                let pseudo = sum(addresses) + 17 + udp.len() as u64;
                assert_eq!(
                    fold(pseudo + sum(udp)),
                    0xffff,
                    "UDP of frame {index}, version {version}"
                );
            }
        }
    }

    /// The smallest IPv4 frame is exactly 64 bytes with its FCS, and one byte less is refused with the minimum.
    #[test]
    fn smallest_frames() {
        let template = Template::new(&stream(4, &[64]), RunKey::new(1, 2)).unwrap();
        assert_eq!(template.bytes().len(), 60);
        let failure = Template::new(&stream(6, &[83]), RunKey::new(1, 2)).unwrap_err();
        assert!(failure.message.contains("84"), "{failure}");
    }

    /// With tunnels, source and destination carry the same index, and the source port changes after a round.
    #[test]
    fn tunnels_rotate_in_both_addresses() {
        let mut asked = stream(4, &[64]);
        asked.tunnels = 1000;
        asked.tunnel_bits = 26;
        asked.ports = 2;
        let template = Template::new(&asked, RunKey::new(1, 2)).unwrap();
        let mut buffer = template.bytes().to_vec();
        let mut flows = std::collections::BTreeSet::new();
        for index in 0..4000 {
            template.write(&mut buffer, index, index, 0);
            assert_eq!(buffer[28..30], buffer[32..34], "third and fourth octet of both");
            flows.insert((be16(&buffer, 28), be16(&buffer, 34)));
        }
        assert_eq!(flows.len(), 2000);
    }

    /// Flows rotate through the networks first, then through the ports, and cover every pair.
    #[test]
    fn flows_rotate_through_all_pairs() {
        let mut asked = stream(4, &[64]);
        asked.networks = 256;
        asked.ports = 3;
        let template = Template::new(&asked, RunKey::new(1, 2)).unwrap();
        let mut buffer = template.bytes().to_vec();
        let mut flows = std::collections::BTreeSet::new();
        for index in 0..768 {
            template.write(&mut buffer, index, index, 0);
            flows.insert((buffer[32], be16(&buffer, 34)));
        }
        assert_eq!(flows.len(), 768);
        asked.dst = "198.19.1.2".parse().unwrap();
        assert!(
            Template::new(&asked, RunKey::new(1, 2)).is_err(),
            "256 networks from 1 on"
        );
    }
}
