// SPDX-License-Identifier: Apache-2.0
//! The frames of noise: traffic in addition to the streams, whose packets the user gave. They are sent in turn.

use base64::Engine;

use crate::failure::{Failure, Outcome};
use crate::frame::octets::{SHORTEST, parse_mac};
use crate::protocol::Noise;

/// Largest number of packets of one noise.
pub const PACKETS: usize = 4096;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_IPV6: [u8; 2] = [0x86, 0xdd];

/// Ethernet frames without FCS, padded to the minimum length of Ethernet.
#[derive(Debug)]
pub struct RawFrames(Vec<Vec<u8>>);

impl RawFrames {
    /// Makes the frames of a noise. Fails if one of its packets is not IPv4 or IPv6; the message says which one.
    pub fn new(noise: &Noise) -> Outcome<Self> {
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
            let mut frame = [&ends[..], &ethertype, &packet].concat();
            frame.resize(frame.len().max(SHORTEST), 0);
            frames.push(frame);
        }
        Ok(RawFrames(frames))
    }

    #[cfg(test)]
    pub fn of(frames: Vec<Vec<u8>>) -> Self {
        RawFrames(frames)
    }

    pub fn all(&self) -> &[Vec<u8>] {
        &self.0
    }

    pub fn longest(&self) -> &[u8] {
        self.0
            .iter()
            .map(Vec::as_slice)
            .max_by_key(|frame| frame.len())
            .unwrap_or_default()
    }

    /// Copies frame `index` to the start of the buffer; returns its length.
    pub fn write(&self, buffer: &mut [u8], index: u64) -> usize {
        let frame = &self.0[(index % self.0.len() as u64) as usize];
        buffer[..frame.len()].copy_from_slice(frame);
        frame.len()
    }
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
        let frames = RawFrames::new(&noise(&[&four, &six])).unwrap();
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
            let failure = RawFrames::new(&noise(&packets)).unwrap_err();
            assert!(failure.message.contains(words), "{failure}");
        }
    }
}
