// SPDX-License-Identifier: Apache-2.0
//! Sending: one thread per CPU serves all streams that leave from it, each frame at its time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hdrhistogram::Histogram;

use crate::clock::{Clock, Monotonic};
use crate::failure::Outcome;
use crate::frames::Frames;
use crate::pace::Schedule;
use crate::port::af_packet::BATCH;
use crate::port::{Batch, FrameSender};
use crate::protocol::TxStall;
use crate::tx_stalls::{LATE_NS, StallList};
use crate::waking::Waking;

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
    /// When sending was ended although frames were left over; None: all were sent, or somebody stopped it.
    pub cut_ns: Option<u64>,
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
        let marked = self.marks.last().map(|&(marked, _)| marked);
        if marked.is_some_and(|marked| index > marked + 1) && at_ns - self.last_left_ns >= pause_ns {
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
    /// Nothing leaves from then on: a flood has no other end, and a stream that is behind does not go on for ever.
    pub until_ns: u64,
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
            cut_ns: None,
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
            until_ns: u64::MAX,
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

    /// Whether nothing more leaves.
    fn over(&self, now_ns: u64) -> bool {
        self.finished() || now_ns >= self.until_ns
    }

    /// Whether the next frame is late.
    fn behind(&self, now_ns: u64) -> bool {
        let paced = self.schedule.is_paced() && !self.finished();
        paced && self.schedule.due_ns(self.schedule.sent()) + LATE_NS < now_ns
    }

    /// When there is something to do.
    fn next_ns(&self, now_ns: u64) -> u64 {
        match (self.over(now_ns), self.waiting()) {
            (true, _) => u64::MAX,
            (false, 0) => self.schedule.next_ns(),
            (false, _) => 0,
        }
    }

    /// Sends what is due; true if frames left.
    fn step(&mut self, port: &mut dyn FrameSender, clock: &impl Clock) -> Outcome<bool> {
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
                self.stalls.note(now, late);
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

/// Sends the streams of one CPU from the calling thread until all are over, or `stop`.
pub fn run(
    cpu: Option<usize>,
    streams: Vec<Outgoing>,
    ports: &mut [&mut dyn FrameSender],
    start_ns: u64,
    stop: &AtomicBool,
) -> Outcome<(Vec<SendReport>, Vec<String>)> {
    let mut notes = Vec::new();
    if let Some(cpu) = cpu {
        if let Err(error) = crate::threads::pin(cpu) {
            notes.push(format!("sender not pinned to CPU {cpu}: {error}"));
        }
    }
    crate::threads::senders_timer_slack();
    let reports = send(&Monotonic, streams, ports, start_ns, stop)?;
    crate::threads::SENDERS.book();
    Ok((reports, notes))
}

fn send(
    clock: &impl Clock,
    mut streams: Vec<Outgoing>,
    ports: &mut [&mut dyn FrameSender],
    start_ns: u64,
    stop: &AtomicBool,
) -> Outcome<Vec<SendReport>> {
    let mut waking = Waking::default();
    waking.learn(clock, start_ns);
    let mut stopped = false;
    loop {
        let now = clock.now_ns();
        stopped |= stop.load(Ordering::Relaxed);
        if stopped || streams.iter().all(|stream| stream.over(now)) {
            break;
        }
        for stream in &mut streams {
            let port = stream.port;
            stream.step(&mut *ports[port], clock)?;
        }
        let now = clock.now_ns();
        let next = streams
            .iter()
            .map(|stream| stream.next_ns(now))
            .min()
            .unwrap_or(0);
        let until = streams.iter().map(|stream| stream.until_ns).max().unwrap_or(0);
        let behind = |now| streams.iter().any(|stream| stream.behind(now));
        waking.wait(clock, next.min(until), behind);
    }
    let ended_ns = clock.now_ns();
    for port in ports.iter_mut() {
        port.finish()?;
    }
    let drained_ns = clock.now_ns();
    for stream in &mut streams {
        if drained_ns - ended_ns > LATE_NS && stream.report.last_tx_ns > 0 {
            stream.report.last_tx_ns = drained_ns; // only then had the port sent what it had taken
        }
        let left_over = stream.report.planned.is_some() && !stream.finished();
        stream.report.cut_ns = (left_over && !stopped).then_some(ended_ns);
    }
    Ok(streams.into_iter().map(Outgoing::close).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::RawFrames;
    use crate::pace::{CATCH_UP, Rate};
    use crate::port::Sent;
    use crate::trial::deadline_ns;

    const MS: u64 = 1_000_000;
    const START_NS: u64 = 30 * MS;
    /// From one look at the clock to the next.
    const STEP_NS: u64 = 1_000;

    /// Time passes when it is looked at or slept. Timers fire at their ticks, and then somewhat late.
    struct Coarse {
        now_ns: AtomicU64,
        tick_ns: u64,
        late_ns: u64,
        /// The process does not run from the first of these times to the second.
        pauses: Vec<(u64, u64)>,
    }

    impl Clock for Coarse {
        fn now_ns(&self) -> u64 {
            let now = self.now_ns.fetch_add(STEP_NS, Ordering::Relaxed) + STEP_NS;
            let paused = self.pauses.iter().find(|&&(from, to)| from <= now && now < to);
            let now = paused.map_or(now, |&(_, to)| to);
            self.now_ns.store(now, Ordering::Relaxed);
            now
        }

        fn sleep_until(&self, at_ns: u64) {
            let woken = at_ns.next_multiple_of(self.tick_ns) + self.late_ns;
            self.now_ns.fetch_max(woken, Ordering::Relaxed);
        }
    }

    /// Takes a frame in so long a time, and none while it is paused; keeps when they left.
    struct Taking<'a> {
        clock: &'a Coarse,
        frame_ns: u64,
        left_ns: Vec<u64>,
    }

    impl FrameSender for Taking<'_> {
        fn send(&mut self, _: &Batch, range: std::ops::Range<usize>) -> Outcome<Sent> {
            for _ in range.clone() {
                let now = self.clock.now_ns.fetch_add(self.frame_ns, Ordering::Relaxed);
                self.left_ns.push(now);
            }
            Ok(Sent {
                taken: range.len(),
                refused: 0,
            })
        }
    }

    fn sent(fps: f64, seconds: f64, clock: &Coarse, frame_ns: u64) -> (SendReport, Vec<u64>) {
        let rates = [Rate { from_s: 0.0, fps }];
        let schedule = Schedule::at_rates(START_NS, &rates, seconds);
        let frames = Frames::Raw(RawFrames::of(vec![vec![0; 60]]));
        let mut stream = Outgoing::new(frames, schedule, 0, Arc::default(), 0).unwrap();
        stream.until_ns = deadline_ns(START_NS, (seconds * 1e9) as u64);
        let mut port = Taking {
            clock,
            frame_ns,
            left_ns: Vec::new(),
        };
        let stop = AtomicBool::new(false);
        let mut reports = send(clock, vec![stream], &mut [&mut port], START_NS, &stop).unwrap();
        (reports.remove(0), port.left_ns)
    }

    fn clock(tick_ns: u64, late_ns: u64, pauses: &[(u64, u64)]) -> Coarse {
        Coarse {
            now_ns: AtomicU64::new(0),
            tick_ns,
            late_ns,
            pauses: pauses
                .iter()
                .map(|(from, to)| (START_NS + from * MS, START_NS + to * MS))
                .collect(),
        }
    }

    /// Most frames that left within any time of this length.
    fn most_within(left_ns: &[u64], window_ns: u64) -> usize {
        let within = |first: usize| left_ns[first..].partition_point(|at| at - left_ns[first] < window_ns);
        (0..left_ns.len()).map(within).max().unwrap_or(0)
    }

    /// Whatever the timers, and after any pause: all frames leave, never faster than the schedule catches up.
    #[test]
    fn all_frames_leave_whatever_the_timers() {
        let pauses = [
            &[][..],
            &[(100, 101), (200, 250)],
            &[(100, 110), (115, 116), (490, 540)],
        ];
        for tick_ns in [1, 4 * MS, 10 * MS] {
            for late_ns in [0, MS] {
                for pauses in pauses {
                    for fps in [50.0, 4_000.0, 30_011.0] {
                        let (report, left) = sent(fps, 0.5, &clock(tick_ns, late_ns, pauses), 1_000);
                        let told = format!("{fps} fps, tick {tick_ns} ns, late {late_ns} ns, {pauses:?}");
                        assert_eq!(report.planned, Some(report.sent), "{told}");
                        assert_eq!(report.cut_ns, None, "{told}");
                        assert!(left.is_sorted() && left[0] >= START_NS, "{told}");
                        let most = (fps * CATCH_UP * 0.010).ceil() as usize + 2;
                        let seen = most_within(&left, 10 * MS);
                        assert!(seen <= most, "{told}: {seen} of {most} frames in 10 ms");
                    }
                }
            }
        }
    }

    /// Timers that are milliseconds late, as of a nested guest, do not make frames late: each leaves when it is due.
    #[test]
    fn coarse_timers_do_not_make_frames_late() {
        for (tick_ns, late_ns) in [(1, 4 * MS), (4 * MS, 0), (10 * MS, 0)] {
            let (report, left) = sent(4_000.0, 2.0, &clock(tick_ns, late_ns, &[]), 1_000);
            assert!(left.last().unwrap() - START_NS < 2_001 * MS);
            let late = report.late_frames;
            assert!(
                late < 400,
                "{late} of 8000 frames late: tick {tick_ns} ns, late {late_ns} ns"
            );
        }
    }

    /// The end of a trial waits for what a pause there held back, so that the load is what was offered.
    #[test]
    fn a_pause_at_the_end_makes_the_trial_longer() {
        let (report, left) = sent(10_000.0, 1.0, &clock(1, 0, &[(990, 1_040)]), 1_000);
        assert_eq!(report.sent, 10_000);
        let took = left.last().unwrap() - START_NS;
        assert!((1_040 * MS..1_100 * MS).contains(&took), "{took} ns");
        let [stall] = &report.stalls[..] else {
            panic!("{:?}", report.stalls)
        };
        assert!(stall.at_ns.abs_diff(START_NS + 990 * MS) < 200_000);
        assert!((stall.ms - 50.0).abs() < 0.3);
    }

    /// A port that is too slow ends the trial at its bound; the rest is unsent, and nothing is called a stall.
    #[test]
    fn overload_ends_at_the_bound() {
        let (report, _) = sent(10_000.0, 1.0, &clock(1, 0, &[]), 250_000);
        let deadline_ns = deadline_ns(START_NS, 1_000 * MS);
        assert!((7_500..8_000).contains(&report.sent), "{}", report.sent);
        assert!(report.cut_ns.unwrap().abs_diff(deadline_ns) < 4 * MS);
        assert_eq!(report.stalls, []);
        let (report, _) = sent(10_000.0, 1.0, &clock(1, 0, &[]), 100_000);
        assert_eq!((report.sent, report.cut_ns), (10_000, None));
    }
}
