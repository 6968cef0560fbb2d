// SPDX-License-Identifier: Apache-2.0
//! Receiving: every frame of a port is judged, counted and timed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::arrivals::Arrivals;
use crate::esp::opening::{Opened, Opening};
use crate::esp::ready::Departed;
use crate::failure::Outcome;
use crate::frame::NUMBER_MASK;
use crate::port::{FrameReceiver, RxFrame};
use crate::protocol::Slice;
use crate::sender::{Live, tag_ns};
use crate::sequence::SequenceCount;
use crate::verify::{Expected, Verdict, judge};

pub const SLICES: usize = 20;
const WAIT: Duration = Duration::from_millis(50);

#[derive(Debug, Default, Clone, Copy)]
pub struct SliceSum {
    pub frames: u64,
    pub min_ns: u64,
    pub total_ns: u64,
}

impl SliceSum {
    fn add(&mut self, other: &SliceSum) {
        if other.frames > 0 && (self.frames == 0 || other.min_ns < self.min_ns) {
            self.min_ns = other.min_ns;
        }
        self.frames += other.frames;
        self.total_ns += other.total_ns;
    }
}

/// What arrived of one stream.
#[derive(Debug)]
pub struct StreamCount {
    pub sequence: SequenceCount,
    pub latency: Histogram<u64>,
    pub after_stop: u64,
    pub last_rx_ns: u64,
    tag_at_s: Option<f64>,
    pub tag_ns: u64,
    /// Of frames sent at the time of the tag or later the one with the lowest number, and its latency, ns.
    pub tagged: Option<(u64, u64)>,
    slices: [SliceSum; SLICES],
    start_ns: u64,
    slice_ns: u64,
    live: Arc<Live>,
    /// When each frame was sent, where frames do not bear it.
    pub departed: Option<Departed>,
}

/// The whole time of which a frame carries the low 48 bits, near `now_ns`.
fn whole_time(low: u64, now_ns: u64) -> u64 {
    let half = 1u64 << 47;
    let time = now_ns & !NUMBER_MASK | low;
    if time > now_ns.saturating_add(half) {
        time.saturating_sub(NUMBER_MASK + 1)
    } else if time + half < now_ns {
        time + NUMBER_MASK + 1
    } else {
        time
    }
}

impl StreamCount {
    pub fn new(start_ns: u64, duration_ns: u64, tag_at_s: Option<f64>, live: Arc<Live>) -> Outcome<Self> {
        Ok(StreamCount {
            sequence: SequenceCount::default(),
            latency: crate::latency::histogram()?,
            after_stop: 0,
            last_rx_ns: 0,
            tag_at_s,
            tag_ns: tag_ns(start_ns, tag_at_s),
            tagged: None,
            slices: [SliceSum::default(); SLICES],
            start_ns,
            slice_ns: (duration_ns / SLICES as u64).max(1),
            live,
            departed: None,
        })
    }

    /// Sending starts at this time instead.
    pub fn begin_at(&mut self, start_ns: u64) {
        self.start_ns = start_ns;
        self.tag_ns = tag_ns(start_ns, self.tag_at_s);
    }

    /// A tagged frame came, or one after it.
    pub fn tag(&mut self, number: u64, latency_ns: u64) {
        if self.tagged.is_none_or(|(lowest, _)| number < lowest) {
            self.tagged = Some((number, latency_ns));
        }
    }

    /// Whether it came for the first time.
    fn intact(&mut self, number: u64, time: u64, at_ns: u64) -> bool {
        if !self.sequence.intact(number) {
            return false;
        }
        let sent_ns = match &self.departed {
            Some(departed) => departed[number as usize].load(Ordering::Relaxed),
            None => whole_time(time, at_ns),
        };
        let latency = at_ns.saturating_sub(sent_ns).max(1);
        self.latency.saturating_record(latency);
        if sent_ns >= self.tag_ns {
            self.tag(number, latency);
        }
        let slice = (sent_ns.saturating_sub(self.start_ns) / self.slice_ns).min(SLICES as u64 - 1);
        let slice = &mut self.slices[slice as usize];
        slice.min_ns = if slice.frames == 0 {
            latency
        } else {
            slice.min_ns.min(latency)
        };
        slice.frames += 1;
        slice.total_ns += latency;
        let last_tx_ns = self.live.last_tx_ns.load(Ordering::Acquire);
        if last_tx_ns != 0 && at_ns > last_tx_ns {
            self.after_stop += 1;
        }
        true
    }

    pub fn publish(&self) {
        self.publish_with(0, 0, 0);
    }

    /// Tells the trial what has come, and what was counted elsewhere in addition.
    pub fn publish_with(&self, arrived: u64, accounted: u64, last_rx_ns: u64) {
        let own = self.sequence.received + self.sequence.duplicated + self.sequence.corrupted;
        self.live.arrived.store(own + arrived, Ordering::Relaxed);
        self.live
            .last_rx_ns
            .store(self.last_rx_ns.max(last_rx_ns), Ordering::Relaxed);
        self.live
            .accounted
            .store(self.sequence.accounted() + accounted, Ordering::Release);
    }

    /// Adds what was counted elsewhere of the frames sent in one slice of the trial.
    pub fn add_slice(&mut self, place: usize, slice: SliceSum) {
        self.slices[place].add(&slice);
    }

    /// Adds the frames that came after the last was sent, from arrivals in bins from `from_ns` on and beyond.
    pub fn take_tail(&mut self, from_ns: u64, bin_ns: u64, bins: &[u64], beyond: u64) {
        let last_tx_ns = self.live.last_tx_ns.load(Ordering::Acquire);
        if last_tx_ns == 0 || last_tx_ns > from_ns + bin_ns * bins.len() as u64 {
            return; // it never ended, or so late that its frames are missing: no trial to tell more of
        }
        let first = last_tx_ns.saturating_sub(from_ns).div_ceil(bin_ns) as usize;
        self.after_stop += bins[first..].iter().sum::<u64>() + beyond;
    }
}

/// The slices of several counts of one trial, put together.
pub fn slices<'a>(counts: impl Iterator<Item = &'a StreamCount>) -> Vec<Slice> {
    let mut sums = [SliceSum::default(); SLICES];
    let mut slice_ns = 0;
    for count in counts {
        slice_ns = count.slice_ns;
        for (sum, slice) in sums.iter_mut().zip(&count.slices) {
            sum.add(slice);
        }
    }
    sums.iter()
        .enumerate()
        .map(|(i, slice)| Slice {
            t_s: (i as u64 * slice_ns) as f64 / 1e9,
            rx_frames: slice.frames,
            min_us: (slice.frames > 0).then(|| slice.min_ns as f64 / 1e3),
            mean_us: (slice.frames > 0).then(|| slice.total_ns as f64 / slice.frames as f64 / 1e3),
        })
        .collect()
}

/// What arrived at one port.
#[derive(Default)]
pub struct PortCount {
    pub expected: Vec<Expected>,
    /// One for each of `expected`.
    pub streams: Vec<StreamCount>,
    /// Which of `arrivals` is of the stream that each of `streams` is a part of.
    pub lead: Vec<usize>,
    pub arrivals: Vec<Arrivals>,
    /// Of each of `arrivals`: which stream of the trial.
    of: Vec<usize>,
    pub total: u64,
    pub foreign: u64,
    pub merged: u64,
    pub overrun: u64,
    /// None: all streams come in clear.
    pub opening: Option<Box<Opening>>,
    buffer: Vec<u8>,
}

impl PortCount {
    /// Counts a part of stream `of` of the trial, too.
    pub fn expect(&mut self, of: usize, expected: Expected, count: StreamCount, gaps_over_s: Option<f64>) {
        let lead = self.of.iter().position(|&known| known == of).unwrap_or_else(|| {
            self.of.push(of);
            self.arrivals.push(Arrivals::new(gaps_over_s));
            self.of.len() - 1
        });
        self.lead.push(lead);
        self.expected.push(expected);
        self.streams.push(count);
    }

    pub fn count(&mut self, frame: &RxFrame) {
        self.total += 1;
        match self.opening.take() {
            None => self.tally(frame),
            Some(mut opening) => {
                self.count_esp(&mut opening, frame);
                self.opening = Some(opening);
            }
        }
    }

    /// A frame of a port at which ESP arrives.
    fn count_esp(&mut self, opening: &mut Opening, frame: &RxFrame) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let place = opening.streams[0];
        let ours = opening.take(frame, &mut buffer, &mut |opened, bytes| {
            self.tally_opened(opened, bytes, frame.at_ns, place);
        });
        self.buffer = buffer;
        if ours {
            return;
        }
        match judge(&self.expected, frame) {
            Verdict::Intact { stream, .. } | Verdict::Corrupted { stream, .. }
                if opening.streams.contains(&stream) =>
            {
                opening.counts.cleartext += 1;
            }
            _ => self.tally(frame),
        }
    }

    /// A packet that was opened; damaged ones, which tell no stream, are of the one at `place`.
    fn tally_opened(&mut self, opened: Opened, bytes: &[u8], at_ns: u64, place: usize) {
        match opened {
            Opened::Frame => self.tally(&RxFrame {
                bytes,
                wire_length: bytes.len(),
                at_ns,
                checksum_pending: false,
                vlan_tagged: false,
            }),
            Opened::Damaged => self.streams[place].sequence.corrupted(None),
            Opened::Repeated => self.streams[place].sequence.duplicated += 1,
        }
    }

    /// After the trial: opens the packets that were kept. `progress` gets how many are done, of how many, and says
    /// whether to go on.
    pub fn open_kept(&mut self, progress: &mut dyn FnMut(u64, u64) -> bool) {
        let Some(mut opening) = self.opening.take() else {
            return;
        };
        let (mut done, of, place) = (0, opening.waiting(), opening.streams[0]);
        opening.open_kept(&mut |opened, bytes, at_ns| {
            self.tally_opened(opened, bytes, at_ns, place);
            done += 1;
            done % 1024 != 0 || progress(done, of)
        });
        self.opening = Some(opening);
    }

    fn tally(&mut self, frame: &RxFrame) {
        match judge(&self.expected, frame) {
            Verdict::Intact { stream, number, time } => {
                let count = &mut self.streams[stream];
                count.last_rx_ns = count.last_rx_ns.max(frame.at_ns);
                if count.intact(number, time, frame.at_ns) {
                    self.arrivals[self.lead[stream]].note(frame.at_ns);
                }
            }
            Verdict::Corrupted { stream, number } => {
                self.merged += u64::from(frame.wire_length > self.expected[stream].longest());
                let count = &mut self.streams[stream];
                count.last_rx_ns = count.last_rx_ns.max(frame.at_ns);
                count.sequence.corrupted(number);
            }
            Verdict::Foreign => self.foreign += 1,
        }
    }

    /// Tells the trial what has come; packets that are kept count for the first stream that arrives as ESP.
    pub fn publish(&self) {
        for (place, stream) in self.streams.iter().enumerate() {
            match &self.opening {
                Some(opening) if opening.streams[0] == place => {
                    stream.publish_with(opening.waiting(), opening.waiting(), opening.last_rx_ns);
                }
                _ => stream.publish(),
            }
        }
    }

    /// Receives from the calling thread until `stop`; returns what could not be done as asked.
    pub fn run(
        &mut self,
        cpu: Option<usize>,
        port: &mut dyn FrameReceiver,
        stop: &AtomicBool,
    ) -> Outcome<Vec<String>> {
        let mut notes = Vec::new();
        if let Some(cpu) = cpu {
            if let Err(error) = crate::threads::pin(cpu) {
                notes.push(format!("receiver not pinned to CPU {cpu}: {error}"));
            }
        }
        while !stop.load(Ordering::Relaxed) {
            port.receive(WAIT, &mut |frame| self.count(frame))?;
            self.publish();
        }
        port.receive(Duration::ZERO, &mut |frame| self.count(frame))?;
        self.overrun = port.overrun()? + self.opening.as_ref().map_or(0, |opening| opening.overrun);
        crate::threads::RECEIVERS.book();
        Ok(notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The upper bits of a tx time come from the time of arrival, on both sides of a wrap.
    #[test]
    fn time_is_made_whole_again() {
        let wrap = 1u64 << 48;
        for (sent, now) in [
            (5, 100),
            (wrap - 10, wrap + 20),
            (3 * wrap + 7, 3 * wrap + 9),
            (wrap + 5, wrap - 5),
        ] {
            assert_eq!(
                whole_time(sent & NUMBER_MASK, now),
                sent,
                "sent {sent}, seen {now}"
            );
        }
    }

    /// Of arrivals in bins, those after the last departure are counted, and none if sending never ended.
    #[test]
    fn the_tail_is_counted_from_the_last_departure() {
        let live = Arc::new(Live::default());
        let mut count = StreamCount::new(0, 1_000, None, live.clone()).unwrap();
        count.take_tail(1_000, 100, &[1, 2, 4, 8], 16);
        assert_eq!(count.after_stop, 0);
        for (last_tx_ns, expected) in [(1, 31), (1_150, 28), (1_200, 28), (1_400, 16), (1_401, 0)] {
            live.last_tx_ns.store(last_tx_ns, Ordering::Relaxed);
            count.after_stop = 0;
            count.take_tail(1_000, 100, &[1, 2, 4, 8], 16);
            assert_eq!(count.after_stop, expected, "last departure at {last_tx_ns}");
        }
    }
}
