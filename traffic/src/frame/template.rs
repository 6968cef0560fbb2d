// SPDX-License-Identifier: Apache-2.0
//! The test frames of a stream: Ethernet, IPv4 or IPv6, UDP or TCP, the test header and a fixed pattern.

use std::net::IpAddr;

use crate::failure::{Failure, Outcome};
use crate::frame::flows::Flows;
use crate::frame::headers::{self, Header, Place};
use crate::frame::octets::{FCS, PROTOCOL_TCP, PROTOCOL_UDP, be16, fold, sum};
use crate::frame::sizes;
use crate::frame::test_header::{RunKey, TEST_HEADER, pattern};
use crate::protocol::Stream;

/// A kind of frame in a stream: its size and its headers.
#[derive(Debug)]
pub struct Variant {
    /// The whole frame without FCS. Fields that change from frame to frame are zero.
    pub bytes: Vec<u8>,
    pub place: Place,
    /// Source port of the first flow; flow p of a network adds p.
    pub src_port: u16,
    /// Sum of the IPv4 header's words that do not change from frame to frame.
    pub ip_sum: u64,
    /// Sum of the unchanging words of pseudo header, UDP or TCP header, and pattern.
    pub l4_sum: u64,
}

/// The frames of one stream, complete except for the fields that change from frame to frame.
#[derive(Debug)]
pub struct Template {
    variants: Vec<Variant>,
    /// Index of the variant of each frame of a cycle.
    order: Vec<u16>,
    ipv6: bool,
    stream: u16,
    key: RunKey,
    ports: u64,
    dont_fragment: bool,
    flows: Flows,
    /// Source and destination of every flow as in the frame, one flow after the other; `address_sums` has their sums.
    addresses: Vec<u8>,
    address_sums: Vec<u64>,
}

/// The parts of a stream's frames, as receivers and the description of live frames need them.
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
            // The source port, the addresses and the test header are added for each frame.
            l4_sum: protocol + u64::from(l4_length) + sum(&bytes[place.l4 + 2..]),
            bytes,
        }
    }
}

/// Returns whether a stream is IPv6; fails unless its addresses agree with its version.
fn is_ipv6(stream: &Stream) -> Outcome<bool> {
    match (stream.ip_version, stream.src, stream.dst) {
        (4, IpAddr::V4(_), IpAddr::V4(_)) => Ok(false),
        (6, IpAddr::V6(_), IpAddr::V6(_)) => Ok(true),
        (4 | 6, ..) => Err(Failure::new(
            format!(
                "src {} and dst {} are not IPv{}",
                stream.src, stream.dst, stream.ip_version
            ),
            "give addresses of the stream's ip_version",
        )),
        (other, ..) => Err(Failure::new(
            format!("ip_version is {other}, expected 4 or 6"),
            "",
        )),
    }
}

/// Checks that the source ports that rotate stay below 65536.
fn check_ports(stream: &Stream, headers: &[Header]) -> Outcome<()> {
    for header in headers {
        let first = be16(&header.bytes, header.place.l4);
        if stream.ports == 0 || u32::from(first) + u32::from(stream.ports) > 65_536 {
            return Err(Failure::new(
                format!("{} ports from {first} on do not fit", stream.ports),
                "source ports rotate upwards from src_port and must stay below 65536",
            ));
        }
    }
    Ok(())
}

/// Makes each kind of frame of a stream once, because a sequence may contain the same frame many times. Returns the
/// kinds and, for each of the stream's shares, the index of its kind.
fn kinds(stream: &Stream, headers: &[Header]) -> Outcome<(Vec<Variant>, Vec<u16>)> {
    let mut kinds: Vec<(usize, usize)> = Vec::new();
    let mut variants = Vec::new();
    let mut kind_of = Vec::new();
    for share in &stream.frames {
        let Some(header) = headers.get(share.header) else {
            return Err(Failure::new(
                format!("header {} of {}", share.header, headers.len()),
                "a frame's header is an index into headers",
            ));
        };
        let minimum = header.bytes.len() + TEST_HEADER + FCS;
        if !(minimum..=65_535).contains(&share.size) {
            return Err(Failure::new(
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
    Ok((variants, kind_of))
}

impl Template {
    pub fn new(stream: &Stream, key: RunKey) -> Outcome<Self> {
        let at_stream = |failure: Failure| {
            Failure::new(format!("stream {}: {}", stream.id, failure.message), failure.hint)
        };
        let ipv6 = is_ipv6(stream).map_err(at_stream)?;
        let headers = headers::of(stream).map_err(at_stream)?;
        let order = sizes::cycle(&stream.frames).map_err(at_stream)?;
        let flows = Flows::of(stream)?;
        check_ports(stream, &headers).map_err(at_stream)?;
        let (variants, kind_of) = kinds(stream, &headers).map_err(at_stream)?;
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

    /// Returns the longest frame; the fields that change from frame to frame are zero.
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

    /// Returns the length of frame `index`, bytes without FCS.
    pub fn length(&self, index: u64) -> usize {
        self.variant(index).bytes.len()
    }

    fn variant(&self, index: u64) -> &Variant {
        &self.variants[usize::from(self.order[(index % self.order.len() as u64) as usize])]
    }

    /// Returns the rule for the addresses of the stream's frames.
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
            // An identification is only meaningful if the frame may be fragmented (RFC 6864).
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
mod tests {
    use super::*;
    use crate::frame::octets::ETHERNET;
    use crate::protocol::sample::stream;

    /// In every frame, of every size and flow, the IPv4 and the UDP checksum are right.
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

    /// With tunnels, source and destination have the same index, and the source port changes after all tunnels.
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

    /// Flows rotate through the networks first, then through the source ports, and cover every pair.
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
