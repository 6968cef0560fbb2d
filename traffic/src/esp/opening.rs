// SPDX-License-Identifier: Apache-2.0
//! ESP that arrives: checks SPI, sequence number, ICV and trailer of every packet before its inner frame is judged.
//!
//! If the cipher is too slow for the rate, packets are kept with their times of arrival, and opened after the trial.

use std::collections::HashMap;

use crate::count::sequence::SequenceCount;
use crate::esp::association::{self, Content, Found, Sa};
use crate::esp::numbers::Numbers;
use crate::failure::{Failure, Outcome};
use crate::frame::octets::ETHERNET;
use crate::host::clock::monotonic_ns;
use crate::protocol::{self, EspCounts, Stream};
use crate::wire::RxFrame;

const ROUND: u64 = 16;
const ROUNDS: usize = 4;
/// Number of packets that each thread opens in one round; the frames of a round are judged after it.
const TOGETHER: usize = 4096;
/// A sequence number this far ahead cannot be right: it is damaged, and the suite has no ICV that would show it.
const FAR: u64 = 1 << 31;
/// A jump of more than this is doubtful if the suite has no ICV, until the next packet confirms it.
const JUMP: u64 = 1 << 10;

/// An SA by which packets arrive, and the sequence numbers that arrived in this trial.
struct Inbound {
    sa: Sa,
    asked: protocol::Association,
    /// The highest sequence number that arrived in earlier trials.
    floor: u64,
    numbers: SequenceCount,
    first: Option<u64>,
    highest: u64,
    /// The sequence number of the last packet, if it was doubtful.
    doubtful: Option<u64>,
}

impl Inbound {
    /// Returns the highest sequence number that arrived, in this trial or earlier.
    fn near(&self) -> u64 {
        self.highest.max(self.floor)
    }

    /// Returns whether a packet may have this sequence number. A long trial uses many, so the distance is that from the
    /// last packets, not that from the start of the trial.
    fn plausible(&self, number: u64) -> bool {
        number != 0 && number <= self.near() + FAR
    }

    /// Returns the full sequence number of a packet that carries its low half (ESN): the one closest to those received.
    fn whole(&self, low: u32) -> u64 {
        if !self.sa.keyed.esn {
            return low.into();
        }
        let near = self.near();
        let whole = near & !u64::from(u32::MAX) | u64::from(low);
        if whole + FAR <= near {
            whole + (1 << 32)
        } else if whole > near + FAR && whole >= 1 << 32 {
            whole - (1 << 32) // a late packet of before the low half wrapped
        } else {
            whole
        }
    }

    /// Returns whether a sequence number is not to be noted, because no ICV protects it and it is far ahead. It may be
    /// damaged, and if it were noted, all later packets would be old. It is noted as soon as the next packet has one that
    /// is close to it, as after an outage.
    fn doubts(&mut self, number: u64) -> bool {
        let before = self.doubtful.take();
        if self.sa.keyed.suite.icv_bytes() > 0 || number <= self.near() + JUMP {
            return false;
        }
        match before {
            Some(before) if before != number && before.abs_diff(number) <= JUMP => {
                self.note(before);
                false
            }
            _ => {
                self.doubtful = Some(number);
                true
            }
        }
    }

    /// Notes that a sequence number above the floor arrived; returns false if it arrived before in this trial.
    fn note(&mut self, number: u64) -> bool {
        let new = self.numbers.intact(number - self.floor - 1);
        self.highest = self.highest.max(number);
        self.first = Some(self.first.map_or(number, |first| first.min(number)));
        new
    }
}

/// The outcome of opening a packet.
#[derive(Debug, PartialEq, Eq)]
pub enum Opened {
    /// The packet is authentic and new; its inner frame follows.
    Frame,
    /// The packet belongs to an SA of this port, but is damaged or malformed.
    Damaged,
    /// The packet is authentic, but its sequence number arrived before, or is not higher than those of earlier trials.
    Repeated,
}

/// A packet that is kept until after the trial: its frame is `bytes[from..end]` of `Opening`.
struct Kept {
    from: usize,
    end: usize,
    at_ns: u64,
    found: Found,
}

/// The SAs of one port, and the counts of their packets.
pub struct Opening {
    sas: Vec<Inbound>,
    by_spi: HashMap<u32, usize>,
    pub counts: EspCounts,
    /// Indexes of those of the port's streams that must not arrive in clear.
    pub streams: Vec<usize>,
    keeps: bool,
    kept: Vec<Kept>,
    bytes: Vec<u8>,
    room: usize,
    /// Number of packets that could not be kept for lack of memory.
    pub overrun: u64,
    pub last_rx_ns: u64,
}

impl Opening {
    /// Sets up the SAs of the streams that arrive at a port; returns None if all of them arrive in clear.
    pub fn of<'a>(arriving: impl Iterator<Item = &'a Stream>, numbers: &Numbers) -> Outcome<Option<Self>> {
        let mut opening = Opening {
            sas: Vec::new(),
            by_spi: HashMap::new(),
            counts: EspCounts::default(),
            streams: Vec::new(),
            keeps: false,
            kept: Vec::new(),
            bytes: Vec::new(),
            room: 0,
            overrun: 0,
            last_rx_ns: 0,
        };
        for (place, stream) in arriving.enumerate() {
            if !stream.open.is_empty() {
                opening.streams.push(place);
            }
            for asked in &stream.open {
                if opening.by_spi.contains_key(&asked.spi) {
                    continue; // another stream uses the same SA
                }
                let at_stream = |failure: Failure| {
                    Failure::new(format!("stream {}: {}", stream.id, failure.message), failure.hint)
                };
                opening.by_spi.insert(asked.spi, opening.sas.len());
                opening.sas.push(Inbound {
                    sa: Sa::new(asked).map_err(at_stream)?,
                    asked: asked.clone(),
                    floor: numbers.highest(asked),
                    numbers: SequenceCount::default(),
                    first: None,
                    highest: 0,
                    doubtful: None,
                });
            }
        }
        Ok((!opening.sas.is_empty()).then_some(opening))
    }

    /// Measures the time to open a packet whose inner packet has `inner` bytes, ns.
    pub fn cost_ns(&self, inner: usize) -> f64 {
        let sa = &self.sas[0].sa;
        let mut frame = vec![0; ETHERNET + sa.packet_bytes(inner)];
        sa.seal(&vec![0x45; inner], 1, &mut frame[ETHERNET..]);
        let esp = &frame[ETHERNET + sa.outer_bytes()..];
        let mut buffer = Vec::new();
        let round = |_| {
            let from_ns = monotonic_ns();
            for _ in 0..ROUND {
                sa.open(esp, 1, &frame, &mut buffer);
            }
            (monotonic_ns() - from_ns) as f64 / ROUND as f64
        };
        (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
    }

    /// Returns the memory that a kept packet takes whose inner packet has `inner` bytes.
    pub fn kept_bytes(&self, inner: usize) -> usize {
        self.sas[0].sa.packet_bytes(inner) + ETHERNET + size_of::<Kept>()
    }

    /// Begins to keep packets until after the trial, in at most `room` bytes of memory.
    pub fn keep(&mut self, room: usize) {
        self.keeps = true;
        self.room = room;
    }

    /// Returns how many packets wait to be opened.
    pub fn waiting(&self) -> u64 {
        self.kept.len() as u64
    }

    /// Takes a frame that is ESP of one of the SAs, or malformed ESP; returns false for any other frame.
    ///
    /// Unless the packet is kept, `each` gets the outcome and the inner frame.
    pub fn take(
        &mut self,
        frame: &RxFrame,
        buffer: &mut Vec<u8>,
        each: &mut dyn FnMut(Opened, &[u8]),
    ) -> bool {
        let Some(found) = association::find(frame.bytes).filter(|found| found.end <= frame.bytes.len())
        else {
            if association::is_esp(frame.bytes) {
                self.counts.malformed += 1;
                each(Opened::Damaged, &[]);
                return true;
            }
            return false;
        };
        let Some(&which) = self.by_spi.get(&found.spi) else {
            self.counts.unknown_spi += 1;
            return false;
        };
        if !self.sas[which].sa.addresses_are(&frame.bytes[ETHERNET..])
            || frame.bytes.len() != frame.wire_length
        {
            self.counts.malformed += 1;
            each(Opened::Damaged, &[]);
            return true;
        }
        self.counts.packets += 1;
        self.last_rx_ns = self.last_rx_ns.max(frame.at_ns);
        if !self.keeps {
            let number = self.sas[which].whole(found.number);
            let esp = &frame.bytes[found.from..found.end];
            let content = self.sas[which].sa.open(esp, number, frame.bytes, buffer);
            each(self.settle(which, number, &content), content.frame(buffer));
            return true;
        }
        let from = self.bytes.len();
        if from + frame.bytes.len() + size_of::<Kept>() * (self.kept.len() + 1) > self.room {
            self.overrun += 1;
            return true;
        }
        self.bytes.extend(frame.bytes);
        self.kept.push(Kept {
            from,
            end: self.bytes.len(),
            at_ns: frame.at_ns,
            found,
        });
        true
    }

    /// Counts a packet after the attempt to open it.
    fn settle(&mut self, which: usize, number: u64, content: &Content) -> Opened {
        let inbound = &mut self.sas[which];
        match content {
            Content::BadIcv => {
                self.counts.bad_icv += 1;
                return Opened::Damaged;
            }
            Content::Malformed => {
                self.counts.malformed += 1;
                return Opened::Damaged;
            }
            Content::Frame(_) => {}
        }
        if !inbound.plausible(number) {
            self.counts.malformed += 1;
            return Opened::Damaged;
        }
        self.counts.authentic += 1;
        if number <= inbound.floor {
            self.counts.old += 1;
            return Opened::Repeated;
        }
        if inbound.doubts(number) {
            return Opened::Frame;
        }
        let before = inbound.numbers.reordered;
        if !inbound.note(number) {
            self.counts.repeated += 1;
            return Opened::Repeated;
        }
        self.counts.not_rising += inbound.numbers.reordered - before;
        Opened::Frame
    }

    /// Opens the packets that were kept, on all CPUs. `each` gets them in the order of arrival, with the time of
    /// arrival, and returns whether to continue.
    pub fn open_kept(&mut self, each: &mut dyn FnMut(Opened, &[u8], u64) -> bool) {
        let kept = std::mem::take(&mut self.kept);
        let bytes = std::mem::take(&mut self.bytes);
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        for kept in kept.chunks(TOGETHER * threads) {
            let numbered: Vec<(&Kept, usize, u64)> = kept
                .iter()
                .map(|kept| {
                    let which = self.by_spi[&kept.found.spi];
                    (kept, which, self.sas[which].whole(kept.found.number))
                })
                .collect();
            let (sas, bytes) = (&self.sas, &bytes);
            let opened: Vec<Vec<(Content, Vec<u8>)>> = std::thread::scope(|scope| {
                let working: Vec<_> = numbered
                    .chunks(TOGETHER)
                    .map(|share| {
                        scope.spawn(move || {
                            let one = |&(packet, which, number): &(&Kept, usize, u64)| {
                                let frame = &bytes[packet.from..packet.end];
                                let esp = &frame[packet.found.from..packet.found.end];
                                let mut buffer = Vec::new();
                                let content = sas[which].sa.open(esp, number, frame, &mut buffer);
                                (content, buffer)
                            };
                            share.iter().map(one).collect()
                        })
                    })
                    .collect();
                working
                    .into_iter()
                    .filter_map(|thread| thread.join().ok())
                    .collect()
            });
            for ((packet, which, number), (content, buffer)) in
                numbered.into_iter().zip(opened.into_iter().flatten())
            {
                let outcome = self.settle(which, number, &content);
                if !each(outcome, content.frame(&buffer), packet.at_ns) {
                    return;
                }
            }
        }
    }

    /// Ends the trial: returns the counts, and notes the highest sequence numbers in `numbers`.
    pub fn close(&mut self, numbers: &mut Numbers) -> EspCounts {
        for inbound in &self.sas {
            if let Some(first) = inbound.first {
                let distinct = inbound.numbers.received;
                self.counts.gaps += inbound.highest - first + 1 - distinct;
                numbers.opened(&inbound.asked, inbound.highest);
            }
        }
        self.counts.opened_after = self.keeps;
        self.counts.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::sample::association;

    fn inbound(asked: protocol::Association, floor: u64) -> Inbound {
        Inbound {
            sa: Sa::new(&asked).unwrap(),
            asked,
            floor,
            numbers: SequenceCount::default(),
            first: None,
            highest: 0,
            doubtful: None,
        }
    }

    /// The upper half of a sequence number is that of the number closest to the last ones, on both sides of a wrap.
    #[test]
    fn numbers_are_made_whole_on_both_sides_of_a_wrap() {
        let mut asked = association("aes128gcm16", 0x1000);
        asked.esn = true;
        let wrap = 1u64 << 32;
        for (near, number) in [
            (0, 1),
            (wrap - 10, wrap + 20),
            (wrap + 20, wrap - 10),
            (3 * wrap, 3 * wrap - 1),
            (3 * wrap - 1, 3 * wrap),
            (wrap + 7, wrap + 7 - FAR + 1),
            (wrap + 7, wrap + 7 + FAR),
        ] {
            let low = number as u32;
            assert_eq!(inbound(asked.clone(), near).whole(low), number, "near {near}");
        }
        assert_eq!(
            inbound(asked, 5).whole(u32::MAX),
            u64::from(u32::MAX),
            "no number is below 0"
        );
    }

    /// A sequence number is far ahead if it is far beyond the last packet, not if the trial has had many packets.
    #[test]
    fn numbers_far_ahead_are_those_far_beyond_the_last_packet() {
        let mut inbound = inbound(association("null-null", 0x1000), 7);
        assert!(!inbound.plausible(0));
        assert!(inbound.plausible(FAR + 7) && !inbound.plausible(FAR + 8));
        inbound.highest = FAR + 7;
        assert!(inbound.plausible(FAR + 8) && inbound.plausible(2 * FAR + 7));
        assert!(!inbound.plausible(2 * FAR + 8));
    }
}
