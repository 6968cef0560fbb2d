// SPDX-License-Identifier: Apache-2.0
//! The addresses through which a stream's frames rotate: destination networks, or subnets at both ends of tunnels.
//!
//! With networks (RFC 2544, 12), the index of the flow is added to the third octet of an IPv4 destination, or to the
//! eighth octet of an IPv6 destination. With tunnels, the index is added to the subnet (at the tunnels' prefix length)
//! of both source and destination, so that both addresses of a frame belong to the same tunnel, in either direction.

use std::net::IpAddr;

use crate::failure::{Failure, Outcome};
use crate::protocol::Stream;

/// A rule for addresses: those of frame k are the stream's first addresses plus (k modulo count) · step. The source
/// changes only if `source_moves`.
#[derive(Debug, Clone, Copy)]
pub struct Flows {
    pub count: u16,
    step: u128,
    source_moves: bool,
    src: u128,
    dst: u128,
    /// Number of octets of an address: 4 or 16.
    octets: usize,
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

impl Flows {
    /// Reads a stream's flows. Fails if their number does not fit; the message says which number, and why.
    pub fn of(stream: &Stream) -> Outcome<Self> {
        let wrong =
            |message: String, hint: &str| Failure::new(format!("stream {}: {message}", stream.id), hint);
        let (bits, network_bits) = if stream.dst.is_ipv6() { (128, 64) } else { (32, 24) };
        let (src, dst) = (number(stream.src), number(stream.dst));
        let flows = |count, prefix: u8, source_moves| Flows {
            count,
            step: 1 << (bits - prefix),
            source_moves,
            src,
            dst,
            octets: usize::from(bits / 8),
        };
        if stream.tunnels > 1 && stream.networks > 1 {
            return Err(wrong(
                format!(
                    "{} networks and {} tunnels at once",
                    stream.networks, stream.tunnels
                ),
                "both rotate the destination: ask for one of them",
            ));
        }
        if stream.tunnels > 1 {
            if !(1..=bits).contains(&stream.tunnel_bits) {
                return Err(wrong(
                    format!("tunnel_bits is {}, expected 1 to {bits}", stream.tunnel_bits),
                    "it is the prefix length of one tunnel's subnet",
                ));
            }
            let found = flows(stream.tunnels, stream.tunnel_bits, true);
            let span = found.step.saturating_mul(stream.tunnels.into());
            let last = (u128::MAX >> (128 - bits)).saturating_sub(span - found.step);
            if src > last || dst > last || src.abs_diff(dst) < span {
                return Err(wrong(
                    format!(
                        "{} tunnels of /{} from {} and {} on do not fit",
                        stream.tunnels, stream.tunnel_bits, stream.src, stream.dst
                    ),
                    "subnets are counted upwards and must neither reach the other side's nor leave the address space",
                ));
            }
            return Ok(found);
        }
        let octet = (dst >> (bits - network_bits)) as u8;
        if stream.tunnels == 0
            || !(1..=256).contains(&stream.networks)
            || u16::from(octet) + stream.networks > 256
        {
            return Err(wrong(
                format!(
                    "{} networks or {} tunnels from {} on do not fit",
                    stream.networks, stream.tunnels, stream.dst
                ),
                "1 to 256 networks: their index is added to the third octet of an IPv4 address, the eighth of an IPv6 one, and must stay below 256; at least 1 tunnel",
            ));
        }
        Ok(flows(stream.networks, network_bits, false))
    }

    /// Returns source and destination of a flow as in the IP header: 8 or 32 octets.
    pub fn addresses(&self, index: u16) -> Vec<u8> {
        let offset = u128::from(index) * self.step;
        let src = self.src + if self.source_moves { offset } else { 0 };
        [src, self.dst + offset]
            .iter()
            .flat_map(|address| address.to_be_bytes()[16 - self.octets..].to_vec())
            .collect()
    }

    /// Returns whether this is the destination address of one of the flows.
    pub fn reach(&self, destination: &[u8]) -> bool {
        let offset = destination
            .iter()
            .fold(0, |number, &octet| number << 8 | u128::from(octet))
            .wrapping_sub(self.dst);
        offset % self.step == 0 && offset / self.step < u128::from(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::sample::stream;

    fn tunnels(version: u8, count: u16, bits: u8) -> Stream {
        Stream {
            tunnels: count,
            tunnel_bits: bits,
            ..stream(version, &[84])
        }
    }

    /// Both addresses change from one subnet to the next, and the host's part stays the same.
    #[test]
    fn tunnels_move_source_and_destination_together() {
        let flows = Flows::of(&tunnels(4, 1000, 26)).unwrap();
        assert_eq!(flows.addresses(0), [198, 18, 0, 2, 198, 19, 0, 2]);
        assert_eq!(flows.addresses(5), [198, 18, 1, 66, 198, 19, 1, 66]);
        assert_eq!(flows.addresses(999), [198, 18, 249, 194, 198, 19, 249, 194]);
        let flows = Flows::of(&tunnels(6, 1000, 62)).unwrap();
        let expected: [std::net::Ipv6Addr; 2] = [
            "2001:2:0:f9c::2".parse().unwrap(),
            "2001:2:0:8f9c::2".parse().unwrap(),
        ];
        assert_eq!(
            flows.addresses(999),
            expected.map(|address| address.octets()).concat()
        );
    }

    /// Networks change the destination alone.
    #[test]
    fn networks_move_the_destination_alone() {
        let flows = Flows::of(&Stream {
            networks: 256,
            ..stream(4, &[84])
        })
        .unwrap();
        assert_eq!(flows.addresses(255), [198, 18, 0, 2, 198, 19, 255, 2]);
    }

    /// The destination of each flow is recognised; another host and the next subnet are not.
    #[test]
    fn only_own_destinations_are_reached() {
        for (version, bits) in [(4, 26), (6, 62)] {
            let flows = Flows::of(&tunnels(version, 1000, bits)).unwrap();
            let length = if version == 4 { 4 } else { 16 };
            for index in [0, 1, 999] {
                let mut destination = flows.addresses(index)[length..].to_vec();
                assert!(flows.reach(&destination));
                destination[length - 1] ^= 1;
                assert!(!flows.reach(&destination));
            }
            assert!(!flows.reach(&flows.addresses(1000)[length..]));
        }
    }

    /// Flows are refused, with their number, if they overlap the other side, leave the address space, or are of both
    /// kinds at once.
    #[test]
    fn what_does_not_fit_is_refused() {
        let mut at_the_end = tunnels(4, 3, 26);
        at_the_end.dst = "255.255.255.130".parse().unwrap();
        let mut both = tunnels(4, 2, 26);
        both.networks = 2;
        for (asked, words) in [
            (
                tunnels(4, 1025, 26),
                "1025 tunnels of /26 from 198.18.0.2 and 198.19.0.2",
            ),
            (tunnels(6, 1000, 40), "1000 tunnels of /40"),
            (tunnels(6, 1000, 1), "1000 tunnels of /1"),
            (tunnels(4, 2, 0), "tunnel_bits is 0, expected 1 to 32"),
            (tunnels(4, 2, 33), "tunnel_bits is 33, expected 1 to 32"),
            (tunnels(4, 0, 26), "0 tunnels"),
            (at_the_end, "3 tunnels of /26 from 198.18.0.2 and 255.255.255.130"),
            (both, "2 networks and 2 tunnels at once"),
        ] {
            let failure = Flows::of(&asked).unwrap_err();
            assert!(failure.message.contains(words), "{failure}");
        }
        assert!(Flows::of(&tunnels(4, 1024, 26)).is_ok());
    }
}
