// SPDX-License-Identifier: Apache-2.0
//! A stream while it is sent: makes the frames that are due, hands them to a port, and counts those that left.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::count::live::{Live, tag_ns};
use crate::count::tx_stalls::{LATE_NS, StallList};
use crate::failure::Outcome;
use crate::host::clock::Clock;
use crate::send::frame_source::Frames;
use crate::send::pace::Schedule;
use crate::send::report::{MARK_NS, SendReport, mark_interval_ns};
use crate::wire::{BATCH, Batch, FrameSender};

/// Largest number of paced frames of a batch. All frames of a batch have the same time stamp, so latency is only
/// accurate if a batch is small.
const PACED_BATCH: usize = 16;
/// Largest number of marks if each frame whose lateness changes gets one, in virtual time.
const EXACT_MARKS: usize = 1 << 22;

/// Largest number of marks of a stream in all other trials: 32 MiB, or a trial of 11 minutes with one in each MARK_NS.
const MARKS: usize = 1 << 21;

/// A stream, or noise, while it is sent.
pub struct Outgoing {
    pub frames: Frames,
    pub schedule: Schedule,
    pub first_sequence: u64,
    batch: Batch,
    pub live: Arc<Live>,
    pub report: SendReport,
    stalls: StallList,
    pub tag_at_s: Option<f64>,
    /// Largest number of frames that can be sent. If the schedule has more, the rest is unsent.
    pub most: u64,
    /// No frame leaves at this time or later. It is the end of a flood, and of a stream that is behind schedule.
    pub until_ns: u64,
    /// Index of the port among those of its sender.
    pub port: usize,
}

impl Outgoing {
    pub fn new(
        frames: Frames,
        schedule: Schedule,
        first_sequence: u64,
        live: Arc<Live>,
        port: usize,
    ) -> Outcome<Self> {
        Ok(Outgoing {
            report: SendReport::new(&schedule)?,
            batch: Batch::new(BATCH, &frames.longest()),
            frames,
            schedule,
            first_sequence,
            live,
            stalls: StallList::default(),
            tag_at_s: None,
            most: u64::MAX,
            until_ns: u64::MAX,
            port,
        })
    }

    /// Returns the earliest time at which the tagged frame may leave; u64::MAX if no frame is tagged.
    pub fn tag_ns(&self) -> u64 {
        tag_ns(self.schedule.start_ns(), self.tag_at_s)
    }

    /// Returns how many frames the schedule has released and the port has not taken yet.
    fn waiting(&self) -> usize {
        (self.schedule.sent() - self.report.sent) as usize
    }

    pub fn finished(&self) -> bool {
        (self.schedule.finished() || self.schedule.sent() >= self.most) && self.waiting() == 0
    }

    /// Returns whether no more frames will leave.
    pub fn over(&self, now_ns: u64) -> bool {
        self.finished() || now_ns >= self.until_ns
    }

    /// Returns whether the next frame is more than LATE_NS late.
    pub fn behind(&self, now_ns: u64) -> bool {
        let paced = self.schedule.is_paced() && !self.finished();
        let due_ns = self.schedule.due_ns(self.schedule.sent()) + self.schedule.put_off_ns();
        paced && due_ns + LATE_NS < now_ns
    }

    /// Returns the time of the next work: 0 for at once, u64::MAX if no more frames will leave.
    pub fn next_ns(&self, now_ns: u64) -> u64 {
        match (self.over(now_ns), self.waiting()) {
            (true, _) => u64::MAX,
            (false, 0) => self.schedule.next_ns(),
            (false, _) => 0,
        }
    }

    /// Sends the frames that are due, up to one batch; returns true if the port took any.
    pub fn step(&mut self, port: &mut dyn FrameSender, clock: &impl Clock) -> Outcome<bool> {
        let now = clock.now_ns();
        if self.over(now) {
            return Ok(false);
        }
        let most = if self.schedule.is_paced() {
            PACED_BATCH
        } else {
            BATCH
        };
        let most = (most - self.waiting()).min(self.most.saturating_sub(self.schedule.sent()) as usize);
        self.schedule.take(now, most);
        let count = self.waiting();
        if count == 0 {
            return Ok(false);
        }
        let first = self.report.sent;
        for slot in 0..count {
            self.write(slot, first + slot as u64, now);
        }
        let result = port.send(&self.batch, 0..count)?;
        self.report.refused += result.refused as u64;
        if result.taken < count && result.refused == 0 {
            self.report.retries += 1;
            clock.yield_now();
        }
        if result.taken == 0 {
            return Ok(false);
        }
        self.left(result.taken as u64, now, clock.now_ns());
        Ok(true)
    }

    /// Returns the time between two marks.
    fn mark_ns(&self) -> u64 {
        match self.until_ns {
            u64::MAX => MARK_NS,
            until_ns => mark_interval_ns(until_ns.saturating_sub(self.schedule.start_ns()), MARKS),
        }
    }

    /// Writes frame `index` to a buffer of the batch.
    fn write(&mut self, slot: usize, index: u64, time: u64) {
        let sequence = self.first_sequence + index;
        let buffer = self.batch.buffer(slot);
        self.batch.lengths[slot] = self.frames.write(buffer, index, sequence, time);
    }

    /// Counts `taken` frames that left together at `now`, in a system call that returned at `done_ns`.
    fn left(&mut self, taken: u64, now: u64, done_ns: u64) {
        let first = self.report.sent;
        if first == 0 {
            self.report.first_tx_ns = now;
        }
        let (marked, mark_ns) = (self.report.marks.last(), self.mark_ns());
        if marked.is_none_or(|mark| now - mark.1 >= mark_ns) {
            self.report.mark(first, now, mark_ns);
        }
        if self.report.tagged.is_none() && now >= self.tag_ns() {
            self.report.tagged = Some((first, now));
        }
        self.report.sent += taken;
        self.report.last_tx_ns = done_ns;
        self.report.last_left_ns = now;
        self.live.sent.store(self.report.sent, Ordering::Relaxed);
        if self.schedule.is_paced() {
            for index in first..self.report.sent {
                let due = self.schedule.due_ns(index);
                let late = now.saturating_sub(due);
                self.report.lateness.saturating_record(late.max(1));
                self.report.late_frames += u64::from(late > LATE_NS);
                let pause = self
                    .stalls
                    .note(now, late.saturating_sub(self.schedule.put_off_ns()));
                let granted = self.schedule.put_off(pause);
                self.stalls.put_off(granted);
            }
        }
    }

    /// Makes the next frame, which leaves at exactly `at_ns` (virtual time), and counts it as sent.
    pub fn make(&mut self, at_ns: u64) -> &[u8] {
        self.schedule.take(at_ns, 1);
        let index = self.report.sent;
        self.write(0, index, at_ns);
        self.mark_exactly(index, at_ns);
        self.left(1, at_ns, at_ns);
        self.batch.frame(0)
    }

    /// Marks a frame whose lateness differs from that of the frame before it, so that `SendReport::sent_at` is exact.
    fn mark_exactly(&mut self, index: u64, at_ns: u64) {
        let Some(before) = index.checked_sub(1) else {
            return;
        };
        let due = |frame| {
            if self.schedule.is_paced() {
                self.schedule.due_ns(frame)
            } else {
                0
            }
        };
        let changed = at_ns - due(index) != self.report.last_left_ns - due(before);
        if self.schedule.is_paced() && changed && self.report.marks.len() < EXACT_MARKS {
            self.report.mark(index, at_ns, 0);
        }
    }

    /// Ends the stream, and returns its report.
    pub fn close(mut self) -> SendReport {
        self.stalls.close();
        if let Frames::Sealed(_, sealing) = &self.frames {
            self.report.last_esp_numbers = sealing.sealer.last_numbers(self.report.sent);
            self.report.sealed_before = Some(sealing.ready.is_some());
        }
        self.report.stalls = self.stalls.listed;
        self.report.stalls_more = self.stalls.more;
        self.report.stalls_more_ns = self.stalls.more_ns;
        self.report.schedule = self.schedule;
        self.live
            .last_tx_ns
            .store(self.report.last_tx_ns.max(1), Ordering::Release);
        self.report
    }
}
