// SPDX-License-Identifier: Apache-2.0
//! The arrivals at one port: each frame is judged, and counted for its stream or as foreign.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::count::arrivals::Arrivals;
use crate::esp::opening::{Opened, Opening};
use crate::failure::Outcome;
use crate::host::threads;
use crate::receive::stream_count::StreamCount;
use crate::receive::verify::{Expected, Verdict, judge};
use crate::wire::{FrameReceiver, RxFrame};

const WAIT: Duration = Duration::from_millis(50);

/// The arrivals at one port.
#[derive(Default)]
pub struct PortCount {
    pub expected: Vec<Expected>,
    /// One for each of `expected`.
    pub streams: Vec<StreamCount>,
    /// Index into `arrivals` for each of `streams`, which may be parts of one stream of the trial.
    pub lead: Vec<usize>,
    pub arrivals: Vec<Arrivals>,
    /// The stream of the trial that each of `arrivals` belongs to.
    of: Vec<usize>,
    pub total: u64,
    pub foreign: u64,
    pub merged: u64,
    pub overrun: u64,
    /// Number of queues by which frames arrive, on several CPUs; 0 in virtual time.
    pub queues: u32,
    /// Reasons why the counts cannot be believed.
    pub faults: Vec<String>,
    /// The ESP of the port; None if all streams arrive in clear.
    pub opening: Option<Box<Opening>>,
    buffer: Vec<u8>,
}

impl PortCount {
    /// Adds a part of the trial's stream `of` to those that are expected.
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

    /// Judges and counts a frame.
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

    /// Counts a frame of a port at which ESP arrives.
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

    /// Counts a packet after it was opened. A damaged or repeated packet counts for the stream at `place`, because its
    /// own stream is not known.
    fn tally_opened(&mut self, opened: Opened, bytes: &[u8], at_ns: u64, place: usize) {
        match opened {
            Opened::Frame => self.tally(&RxFrame::whole(bytes, at_ns)),
            Opened::Damaged => self.streams[place].sequence.corrupted(None),
            Opened::Repeated => self.streams[place].sequence.duplicated += 1,
        }
    }

    /// Opens the packets that were kept until after the trial. `progress` gets the number of packets that are done and
    /// the number of all packets, and returns whether to continue.
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

    /// Judges and counts a frame in clear.
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

    /// Updates the counters that the trial watches. Packets that are kept count for the first stream that arrives as
    /// ESP.
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

    /// Receives in the calling thread until `stop`; returns a note if the thread could not be pinned to its CPU.
    pub fn run(
        &mut self,
        cpu: Option<usize>,
        port: &mut dyn FrameReceiver,
        stop: &AtomicBool,
    ) -> Outcome<Vec<String>> {
        let notes = threads::pin_if_asked("receiver", cpu);
        while !stop.load(Ordering::Relaxed) {
            port.receive(WAIT, &mut |frame| self.count(frame))?;
            self.publish();
        }
        port.receive(Duration::ZERO, &mut |frame| self.count(frame))?;
        self.overrun = port.overrun()? + self.opening.as_ref().map_or(0, |opening| opening.overrun);
        threads::RECEIVERS.book();
        Ok(notes)
    }
}
