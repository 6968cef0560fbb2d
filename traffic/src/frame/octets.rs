// SPDX-License-Identifier: Apache-2.0
//! The octets of a frame: lengths of headers, numbers in network order, the Internet checksum, MAC addresses.

use crate::failure::{Failure, Outcome};

pub const ETHERNET: usize = 14;
pub const FCS: usize = 4;
pub const UDP: usize = 8;
pub const PROTOCOL_UDP: u8 = 17;
pub const PROTOCOL_TCP: u8 = 6;
/// Length of the shortest Ethernet frame, bytes without FCS.
pub const SHORTEST: usize = 60;

pub type Mac = [u8; 6];

/// Reads the big-endian number at `at`.
pub fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Reads the big-endian number of six octets at `at`.
pub fn be48(bytes: &[u8], at: usize) -> u64 {
    u64::from(be16(bytes, at)) << 32 | u64::from(be16(bytes, at + 2)) << 16 | u64::from(be16(bytes, at + 4))
}

/// Adds up the big-endian 16-bit words of the Internet checksum (RFC 1071), not yet folded.
pub fn sum(bytes: &[u8]) -> u64 {
    let mut chunks = bytes.chunks_exact(2);
    let mut total: u64 = chunks.by_ref().map(|word| u64::from(be16(word, 0))).sum();
    if let [last] = chunks.remainder() {
        total += u64::from(*last) << 8;
    }
    total
}

/// Folds the carries of a sum into 16 bits (RFC 1071).
pub fn fold(mut total: u64) -> u16 {
    while total >> 16 != 0 {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

/// Reads a MAC address of six hexadecimal bytes with colons. Fails for any other text.
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

/// Writes a MAC address.
pub fn show_mac(mac: &[u8]) -> String {
    mac.iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<Vec<_>>()
        .join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum and fold agree with the worked example of RFC 1071, section 3.
    #[test]
    fn checksum_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(sum(&bytes), 0x2ddf0);
        assert_eq!(fold(sum(&bytes)), 0xddf2);
        assert_eq!(sum(&[0x12]), 0x1200);
    }

    /// The checksum of a well-known IPv4 header (Wikipedia's example) is the printed one.
    #[test]
    fn checksum_of_a_known_header() {
        let header = [
            0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7,
        ];
        assert_eq!(!fold(sum(&header)), 0xb861);
    }
}
