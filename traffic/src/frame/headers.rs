// SPDX-License-Identifier: Apache-2.0
//! The headers of a stream's frames: those of the RFC 2544 test frame, or headers that the user gave.

use base64::Engine;

use crate::failure::{Failure, Outcome};
use crate::frame::flows::Flows;
use crate::frame::octets::{ETHERNET, PROTOCOL_TCP, PROTOCOL_UDP, UDP, be16, parse_mac};
use crate::protocol::Stream;

const TAG: usize = 4;
const TCP: usize = 20;
const LONGEST: usize = 14 + 2 * TAG + 60 + 60;

/// The offsets of the IP header, the UDP or TCP header and the payload in a frame, and the kinds of these headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub l3: usize,
    pub l4: usize,
    pub payload: usize,
    pub ipv6: bool,
    pub tcp: bool,
}

impl Place {
    /// Returns the offset of the checksum of UDP or TCP.
    pub fn checksum(self) -> usize {
        self.l4 + if self.tcp { 16 } else { 6 }
    }

    /// Finds a frame's headers: Ethernet, at most `tags` VLAN tags, IPv4 or IPv6 without extension headers, UDP or TCP.
    ///
    /// Returns None for other headers, and for headers that are cut.
    pub fn of(bytes: &[u8], tags: usize) -> Option<Self> {
        let mut l3 = ETHERNET;
        let limit = ETHERNET + tags * TAG;
        let mut kind = be16(bytes.get(..ETHERNET)?, 12);
        while matches!(kind, 0x8100 | 0x88a8) && l3 < limit {
            kind = be16(bytes.get(..l3 + TAG)?, l3 + 2);
            l3 += TAG;
        }
        let first = *bytes.get(l3)?;
        let (ipv6, l4, protocol) = match kind {
            0x0800 if first >> 4 == 4 && first & 15 >= 5 => {
                (false, l3 + 4 * usize::from(first & 15), *bytes.get(l3 + 9)?)
            }
            0x86dd if first >> 4 == 6 => (true, l3 + 40, *bytes.get(l3 + 6)?),
            _ => return None,
        };
        let (tcp, payload) = match protocol {
            PROTOCOL_UDP => (false, l4 + UDP),
            PROTOCOL_TCP => (true, l4 + 4 * usize::from(bytes.get(l4 + 12)? >> 4)),
            _ => return None,
        };
        let whole = payload <= bytes.len() && (!tcp || payload >= l4 + TCP);
        whole.then_some(Place {
            l3,
            l4,
            payload,
            ipv6,
            tcp,
        })
    }
}

/// The headers of a frame: all bytes before the payload.
#[derive(Debug, Clone)]
pub struct Header {
    pub bytes: Vec<u8>,
    pub place: Place,
}

/// Makes a stream's headers, with all fields that do not change from frame to frame. Fails if one of the user's headers
/// cannot be used; the message says which one.
pub fn of(stream: &Stream) -> Outcome<Vec<Header>> {
    if stream.headers.is_empty() {
        return Ok(vec![finished(rfc2544(stream)?, stream)?]);
    }
    let mut found = Vec::new();
    for (position, text) in stream.headers.iter().enumerate() {
        let wrong = |what: &str| {
            Failure::new(
                format!("header {position}: {what}"),
                "expected base64 of Ethernet, up to two VLAN tags, IPv4 or IPv6 without extension headers, and UDP or TCP, with nothing after it",
            )
        };
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(text)
            .map_err(|error| wrong(&error.to_string()))?;
        if bytes.len() > LONGEST {
            return Err(wrong(&format!("{} bytes", bytes.len())));
        }
        let place = Place::of(&bytes, 2).ok_or_else(|| wrong("not such headers"))?;
        if place.payload != bytes.len() {
            return Err(wrong(&format!(
                "{} bytes after the headers",
                bytes.len() - place.payload
            )));
        }
        if place.ipv6 != (stream.ip_version == 6) {
            return Err(wrong(&format!("not IPv{}", stream.ip_version)));
        }
        found.push(finished(bytes, stream)?);
    }
    Ok(found)
}

/// Makes the bytes of the test frame's headers (RFC 2544, C.2.6.4).
fn rfc2544(stream: &Stream) -> Outcome<Vec<u8>> {
    let mut bytes = vec![0; 12];
    if stream.ip_version == 6 {
        bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, PROTOCOL_UDP, 0]);
    } else {
        bytes.extend([8, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 0, PROTOCOL_UDP, 0, 0]);
    }
    bytes.extend(Flows::of(stream)?.addresses(0));
    bytes.extend(stream.src_port.to_be_bytes());
    bytes.extend(stream.dst_port.to_be_bytes());
    bytes.extend([0; 4]);
    Ok(bytes)
}

/// Writes the fields that the generator sets (MAC addresses, TTL, DF), and zero into those that it sets in each frame.
fn finished(mut bytes: Vec<u8>, stream: &Stream) -> Outcome<Header> {
    let Some(place) = Place::of(&bytes, 2) else {
        return Err(Failure::new("headers that are none", "report this"));
    };
    bytes[..6].copy_from_slice(&parse_mac(&stream.dst_mac)?);
    bytes[6..12].copy_from_slice(&parse_mac(&stream.src_mac)?);
    let ip = &mut bytes[place.l3..place.l4];
    if place.ipv6 {
        ip[4..6].fill(0);
        ip[7] = stream.ttl;
        ip[8..40].fill(0);
    } else {
        ip[2..6].fill(0);
        ip[6] = if stream.dont_fragment { 0x40 } else { 0 };
        ip[7] = 0;
        ip[8] = stream.ttl;
        ip[10..20].fill(0);
    }
    if !place.tcp {
        bytes[place.l4 + 4..place.l4 + 6].fill(0);
    }
    let check = place.checksum();
    bytes[check..check + 2].fill(0);
    Ok(Header { bytes, place })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::sample::stream;

    fn encoded(bytes: &[u8]) -> String {
        base64::engine::general_purpose::STANDARD.encode(bytes)
    }

    /// The offsets take VLAN tags, IPv4 options and TCP options into account.
    #[test]
    fn places_follow_from_the_headers() {
        let mut bytes = vec![1; 12];
        bytes.extend([0x88, 0xa8, 0, 5, 0x81, 0, 0, 7, 8, 0]);
        bytes.extend([
            0x46, 0, 0, 0, 0, 0, 0, 0, 9, 6, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1, 1, 0,
        ]);
        bytes.extend([
            0, 80, 0, 81, 0, 0, 0, 0, 0, 0, 0, 0, 0x60, 2, 0, 0, 0, 0, 0, 0, 2, 4, 5, 0xb4,
        ]);
        let place = Place::of(&bytes, 2).unwrap();
        assert_eq!((place.l3, place.l4, place.payload), (22, 46, 70));
        assert!(place.tcp && !place.ipv6);
        assert_eq!(Place::of(&bytes, 1), None);
        assert_eq!(Place::of(&bytes[..69], 2), None);
    }

    /// Bytes that cannot be a header are refused, with the number of the header and the reason.
    #[test]
    fn what_is_no_header_is_refused() {
        let plain = rfc2544(&stream(4, &[64])).unwrap();
        let longer = [plain.as_slice(), &[0]].concat();
        let mut sctp = plain.clone();
        sctp[23] = 132;
        for (bytes, words) in [
            ("?".to_owned(), "header 1: Invalid"),
            (encoded(&plain[..30]), "header 1: not such headers"),
            (encoded(&longer), "header 1: 1 bytes after the headers"),
            (encoded(&sctp), "header 1: not such headers"),
            (
                encoded(&rfc2544(&stream(6, &[84])).unwrap()),
                "header 1: not IPv4",
            ),
            (encoded(&[0; 200]), "header 1: 200 bytes"),
        ] {
            let mut asked = stream(4, &[64]);
            asked.headers = vec![encoded(&plain), bytes];
            let failure = of(&asked).unwrap_err();
            assert!(failure.message.starts_with(words), "{failure}");
        }
    }
}
