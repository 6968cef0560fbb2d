// SPDX-License-Identifier: Apache-2.0
//! Sending: one thread per CPU serves all streams that leave from it, each frame at its time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hdrhistogram::Histogram;

use crate::clock::{monotonic_ns, sleep_until};
use crate::failure::Outcome;
use crate::frames::Frames;
use crate::pace::Schedule;
use crate::port::af_packet::BATCH;
use crate::port::{Batch, FrameSender};
use crate::protocol::TxStall;

/// A sleeping thread wakes late by tens of µs: the last of the wait is spun.
const SPIN_NS: u64 = 50_000;
const LATE_NS: u64 = 100_000;
const STALL_NS: u64 = 500_000;
const LISTED: usize = 200;
/// Paced frames share a time stamp only with few others, so that latency stays honest.
const PACED_BATCH: usize = 16;
/// How often it is noted which frame was sent when.
pub const MARK_NS: u64 = 500_000;
/// As many times are noted at most where each is.
const EXACT_MARKS: usize = 1 << 22;

/// What sender and receiver of a stream tell the trial while it runs.
#[derive(Debug, Default)]
pub struct Live {
    pub sent: AtomicU64,
    /// When the last send returned; 0 while sending.
    pub last_tx_ns: AtomicU64,
    pub arrived: AtomicU64,
    pub accounted: AtomicU64,
    pub last_rx_ns: AtomicU64,
}

/// Collects times at which the sender ran late: one entry from falling behind to being back.
#[derive(Debug, Default)]
struct StallList {
    listed: Vec<TxStall>,
    more: u64,
    open: Option<(u64, u64)>,
}

impl StallList {
    fn note(&mut self, due_ns: u64, late_ns: u64) {
        match &mut self.open {
            Some((_, worst)) if late_ns > LATE_NS => *worst = late_ns.max(*worst),
            Some(_) => self.close(),
            None if late_ns > STALL_NS => self.open = Some((due_ns, late_ns)),
            None => {}
        }
    }

    fn close(&mut self) {
        if let Some((at_ns, worst)) = self.open.take() {
            if self.listed.len() < LISTED {
                self.listed.push(TxStall {
                    at_ns,
                    ms: worst as f64 / 1e6,
                });
            } else {
                self.more += 1;
            }
        }
    }
}

/// What one stream's sender did.
#[derive(Debug)]
pub struct SendReport {
    pub sent: u64,
    pub planned: Option<u64>,
    pub refused: u64,
    /// Of `sent`: frames that the port's driver had no room for. They never left, and are nobody's loss.
    pub vanished: u64,
    pub retries: u64,
    pub first_tx_ns: u64,
    pub last_tx_ns: u64,
    /// When the last frame left; last_tx_ns may be the end of its system call.
    pub last_left_ns: u64,
    /// Of the first frame that left at the time of the tag or later: its index, and when it left.
    pub tagged: Option<(u64, u64)>,
    pub interval_ns: f64,
    pub schedule: Schedule,
    pub lateness: Histogram<u64>,
    pub late_frames: u64,
    pub stalls: Vec<TxStall>,
    pub stalls_more: u64,
    /// (frame, when it was sent), ascending, about one each half millisecond.
    pub marks: Vec<(u64, u64)>,
    /// The highest number of each of its SAs; empty of a stream in clear, or with a fault.
    pub last_esp_numbers: Vec<u64>,
    /// Whether it was sealed before the trial; None of a stream in clear.
    pub sealed_before: Option<bool>,
}

impl SendReport {
    /// When frame `index` was sent: when it was due, and as late as the marks around it tell.
    pub fn sent_at(&self, index: u64) -> u64 {
        let after = self.marks.partition_point(|mark| mark.0 <= index);
        let Some(&(from, from_ns)) = self.marks.get(after.saturating_sub(1)) else {
            return self.first_tx_ns;
        };
        let last = (self.sent.saturating_sub(1), self.last_left_ns);
        let (to, to_ns) = self.marks.get(after).copied().unwrap_or(last);
        if to <= from || index <= from {
            return from_ns;
        }
        let due = |frame| {
            i128::from(if self.schedule.is_paced() {
                self.schedule.due_ns(frame)
            } else {
                0
            })
        };
        let (late_from, late_to) = (i128::from(from_ns) - due(from), i128::from(to_ns) - due(to));
        let late = late_from + (late_to - late_from) * i128::from(index - from) / i128::from(to - from);
        (due(index) + late) as u64
    }

    /// Notes when frame `index` left; `pause_ns`: after so long a pause also when the one before it did.
    fn mark(&mut self, index: u64, at_ns: u64, pause_ns: u64) {
        if let Some(&(marked, _)) = self.marks.last()
            && index > marked + 1
            && at_ns - self.last_left_ns >= pause_ns
        {
            self.marks.push((index - 1, self.last_left_ns));
        }
        self.marks.push((index, at_ns));
    }
}

/// A stream on its way out.
pub struct Outgoing {
    pub frames: Frames,
    pub schedule: Schedule,
    pub first_sequence: u64,
    batch: Batch,
    pub live: Arc<Live>,
    pub report: SendReport,
    stalls: StallList,
    pub tag_at_s: Option<f64>,
    /// So many frames can be sent and no more, whatever the schedule asks: those beyond are unsent.
    pub most: u64,
    /// Index of the port in the lane.
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
        let report = SendReport {
            sent: 0,
            planned: schedule.planned(),
            refused: 0,
            vanished: 0,
            retries: 0,
            first_tx_ns: 0,
            last_tx_ns: 0,
            last_left_ns: 0,
            tagged: None,
            interval_ns: schedule.last_interval_ns(),
            schedule: schedule.clone(),
            lateness: crate::latency::histogram()?,
            late_frames: 0,
            stalls: Vec::new(),
            stalls_more: 0,
            marks: Vec::new(),
            last_esp_numbers: Vec::new(),
            sealed_before: None,
        };
        Ok(Outgoing {
            batch: Batch::new(BATCH, &frames.longest()),
            frames,
            schedule,
            first_sequence,
            live,
            report,
            stalls: StallList::default(),
            tag_at_s: None,
            most: u64::MAX,
            port,
        })
    }

    /// When the tag's frame is to leave, at the earliest.
    pub fn tag_ns(&self) -> u64 {
        tag_ns(self.schedule.start_ns(), self.tag_at_s)
    }

    /// Frames the schedule let go that the port has not taken yet.
    fn waiting(&self) -> usize {
        (self.schedule.sent() - self.report.sent) as usize
    }

    pub fn finished(&self) -> bool {
        (self.schedule.finished() || self.schedule.sent() >= self.most) && self.waiting() == 0
    }

    fn next_ns(&self) -> u64 {
        match (self.finished(), self.waiting()) {
            (true, _) => u64::MAX,
            (false, 0) => self.schedule.next_ns(),
            (false, _) => 0,
        }
    }

    /// Sends what is due; true if frames left.
    fn step(&mut self, port: &mut dyn FrameSender) -> Outcome<bool> {
        let now = monotonic_ns();
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
            std::thread::yield_now();
        }
        if result.taken == 0 {
            return Ok(false);
        }
        self.left(result.taken as u64, now, monotonic_ns());
        Ok(true)
    }

    /// Makes frame `index` in a buffer of the batch.
    fn write(&mut self, slot: usize, index: u64, time: u64) {
        let sequence = self.first_sequence + index;
        let buffer = self.batch.buffer(slot);
        self.batch.lengths[slot] = self.frames.write(buffer, index, sequence, time);
    }

    /// Books frames that left together at `now`, in a send that was over at `done_ns`.
    fn left(&mut self, taken: u64, now: u64, done_ns: u64) {
        let first = self.report.sent;
        if first == 0 {
            self.report.first_tx_ns = now;
        }
        let marked = self.report.marks.last();
        if marked.is_none_or(|mark| now - mark.1 >= MARK_NS) {
            self.report.mark(first, now, MARK_NS);
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
                self.stalls.note(due, late);
            }
        }
    }

    /// The next frame, made to leave at exactly `at_ns`, when it counts as sent.
    pub fn make(&mut self, at_ns: u64) -> &[u8] {
        self.schedule.take(at_ns, 1);
        let index = self.report.sent;
        self.write(0, index, at_ns);
        self.mark_exactly(index, at_ns);
        self.left(1, at_ns, at_ns);
        self.batch.frame(0)
    }

    /// Between two marks frames are as late as those: there is one wherever it changes.
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

    pub fn close(mut self) -> SendReport {
        self.stalls.close();
        if let Frames::Sealed(_, sealing) = &self.frames {
            self.report.last_esp_numbers = sealing.sealer.last_numbers(self.report.sent);
            self.report.sealed_before = Some(sealing.ready.is_some());
        }
        self.report.stalls = self.stalls.listed;
        self.report.stalls_more = self.stalls.more;
        self.report.schedule = self.schedule;
        self.live
            .last_tx_ns
            .store(self.report.last_tx_ns.max(1), Ordering::Release);
        self.report
    }
}

/// When the frame of a tag is to leave, at the earliest; without one never.
pub fn tag_ns(start_ns: u64, tag_at_s: Option<f64>) -> u64 {
    tag_at_s.map_or(u64::MAX, |at_s| start_ns + (at_s * 1e9) as u64)
}

/// Sends the streams of one CPU from the calling thread until all are done, the deadline, or `stop`.
pub fn run(
    cpu: Option<usize>,
    mut streams: Vec<Outgoing>,
    ports: &mut [&mut dyn FrameSender],
    start_ns: u64,
    deadline_ns: u64,
    stop: &AtomicBool,
) -> Outcome<(Vec<SendReport>, Vec<String>)> {
    let mut notes = Vec::new();
    if let Some(cpu) = cpu
        && let Err(error) = crate::threads::pin(cpu)
    {
        notes.push(format!("sender not pinned to CPU {cpu}: {error}"));
    }
    crate::threads::no_timer_slack();
    while monotonic_ns() + SPIN_NS < start_ns {
        sleep_until(start_ns - SPIN_NS);
    }
    loop {
        let now = monotonic_ns();
        if now >= deadline_ns || stop.load(Ordering::Relaxed) || streams.iter().all(Outgoing::finished) {
            break;
        }
        for stream in &mut streams {
            let port = stream.port;
            stream.step(&mut *ports[port])?;
        }
        let next = streams
            .iter()
            .map(Outgoing::next_ns)
            .min()
            .unwrap_or(0)
            .min(deadline_ns);
        let now = monotonic_ns();
        if next > now + SPIN_NS {
            // Wake now and then to see `stop`.
            sleep_until((next - SPIN_NS).min(now + 50_000_000));
        } else {
            std::hint::spin_loop();
        }
    }
    for port in ports.iter_mut() {
        port.finish()?;
    }
    crate::threads::SENDERS.book();
    Ok((streams.into_iter().map(Outgoing::close).collect(), notes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One stall is one entry, however many frames it made late.
    #[test]
    fn a_stall_is_listed_once() {
        let mut list = StallList::default();
        for (due, late) in [
            (0, 10),
            (100, 3_000_000),
            (200, 2_900_000),
            (300, 600_000),
            (400, 90_000),
            (500, 700_000),
        ] {
            list.note(due, late);
        }
        list.close();
        let listed: Vec<_> = list.listed.iter().map(|stall| (stall.at_ns, stall.ms)).collect();
        assert_eq!(listed, [(100, 3.0), (500, 0.7)]);
    }
}
