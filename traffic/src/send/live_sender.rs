// SPDX-License-Identifier: Apache-2.0
//! The sender of live frames: an XDP program paces, numbers, stamps and redirects each frame.

use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use aya::Ebpf;
use aya::maps::MapData;
use aya::maps::xdp::DevMap;
use aya::programs::Xdp;

use crate::count::histogram::take_slots;
use crate::count::live::Live;
use crate::failure::{Failure, Outcome};
use crate::frame::test_header::RunKey;
use crate::host::clock::{monotonic_ns, sleep_until};
use crate::host::netlink::Link;
use crate::host::netns::Netns;
use crate::host::signals::wake_on_user_signal;
use crate::host::threads;
use crate::protocol::TxStall;
use crate::send::live_streams::{self, LiveStreams};
use crate::send::outgoing::Outgoing;
use crate::send::report::{SendReport, mark_interval_ns};
use crate::xdp::layout::{HDR_SLOTS, Mark, Progress, STREAMS, SendControl};
use crate::xdp::object::{self, Mapped};

/// Longest time that the program waits for a departure before other tasks may have the CPU.
const SLICE_NS: u64 = 10_000;
/// The program is started this long before the first departure, and waits for it. Before the kernel runs a program
/// repeatedly, it waits for an RCU grace period of up to 12 ms (bpf_dispatcher_change_prog).
const AHEAD_NS: u64 = 25_000_000;
/// A batch has room for the frames of this time. Waking the CPU that takes the frames may last half of it.
const BATCH_NS: f64 = 16_000.0;
/// Largest batch. Smaller ones reduce the rate by a fifth, and larger ones do not increase it.
const LARGEST_BATCH: u32 = 64;
/// Largest number of marks, pairs of (frame, time of departure), of each stream: 4 MiB, or a trial of 87 s with one in
/// each half millisecond. In longer trials they are farther apart.
const MARKS: usize = 1 << 18;

/// The port by which a stream leaves.
pub struct LivePort<'a> {
    /// Index of its interface.
    pub index: u32,
    pub netns: &'a Netns,
    pub link: &'a Link,
}

/// A sending program and its maps. It is used for many trials, because its verification takes longer than a short
/// trial.
pub struct LiveSender {
    object: Ebpf,
    program: RawFd,
    control: Mapped<SendControl>,
    described: LiveStreams,
    progress: Mapped<Progress>,
    lateness: Mapped<u64>,
    marks: Mapped<Mark>,
    longest: Vec<u8>,
    batch: u32,
    thread: AtomicI32,
}

impl LiveSender {
    /// Takes a sender of `idle` that has room for the streams, or loads a new one. Fails if XDP cannot send the
    /// streams.
    pub fn get(idle: &mut Vec<LiveSender>, streams: &[Outgoing]) -> Outcome<Self> {
        if let Some(what) = live_streams::unfit(streams) {
            return Err(Failure::new(
                format!("XDP cannot send this: {what}"),
                "\"tx\": \"af_packet\" (in a plan: generator: {native: {tx: af_packet}})",
            ));
        }
        let needs = live_streams::needs(streams);
        match idle.iter().position(|sender| sender.described.hold(needs)) {
            Some(place) => Ok(idle.swap_remove(place)),
            None => {
                idle.clear();
                LiveSender::load(needs.0.next_power_of_two(), needs.1.next_power_of_two())
            }
        }
    }

    fn load(addresses: usize, templates: usize) -> Outcome<Self> {
        let mut object = object::load(
            object::SEND,
            &[
                ("addresses", addresses as u32),
                ("templates", templates as u32),
                ("marks", (MARKS * STREAMS) as u32),
            ],
            &[("marks_each", MARKS as u32)],
        )?;
        let program: &mut Xdp = object
            .program_mut("send")
            .and_then(|program| program.try_into().ok())
            .ok_or_else(|| Failure::new("the sending program is not there", "report this"))?;
        object::load_program(program)?;
        let program = program
            .fd()
            .map_err(|error| object::refused("loading", &error))?
            .as_fd()
            .as_raw_fd();
        Ok(LiveSender {
            control: Mapped::of(&object, "control")?,
            described: LiveStreams::of(&object)?,
            progress: Mapped::of(&object, "progress")?,
            lateness: Mapped::of(&object, "lateness")?,
            marks: Mapped::of(&object, "marks")?,
            longest: Vec::new(),
            batch: 1,
            thread: AtomicI32::new(0),
            program,
            object,
        })
    }

    /// Prepares the program for these streams, and clears all counts. `ports` has one entry for each stream;
    /// `longest_ns` is the longest time that the trial may last.
    pub fn prepare(
        &mut self,
        streams: &[Outgoing],
        ports: &[LivePort],
        key: RunKey,
        longest_ns: u64,
    ) -> Outcome<()> {
        let mut redirects: DevMap<&mut MapData> = self
            .object
            .map_mut("ports")
            .and_then(|map| map.try_into().ok())
            .ok_or_else(|| Failure::new("the map of ports is not there", "report this"))?;
        for (which, port) in ports.iter().enumerate() {
            port.netns.enter(|| {
                redirects
                    .set(which as u32, port.index, None, 0)
                    .map_err(|error| object::refused("naming the port of", &error))
            })?;
        }
        let longest = streams
            .iter()
            .map(|s| s.frames.longest().len())
            .max()
            .unwrap_or(0);
        self.longest = vec![0; longest];
        self.batch = batch_of(streams);
        self.progress.clear(0..streams.len());
        self.lateness.clear(0..streams.len() * HDR_SLOTS);
        self.described.describe(streams);
        self.control.write(
            0,
            SendControl {
                key: key.into(),
                start_ns: 0,
                slice_ns: SLICE_NS,
                mark_ns: mark_interval_ns(longest_ns, MARKS),
                streams: streams.len() as u32,
                stop: 0,
                finished: 0,
                batch: self.batch,
                position: 0,
                pending: 0,
            },
        );
        Ok(())
    }

    /// Gives the program the time of the start and the times of the streams' schedules. To be called before `run`.
    pub fn set_times(&self, streams: &[Outgoing], start_ns: u64) {
        let mut control = self.control.read(0);
        control.start_ns = start_ns;
        self.control.write(0, control);
        for (which, stream) in streams.iter().enumerate() {
            let mut described = self.described.streams.read(which);
            described.until_ns = stream.until_ns;
            described.tag_ns = stream.tag_ns();
            described.stretches = live_streams::stretches(&stream.schedule);
            let mut progress = self.progress.read(which);
            progress.due_ns = described.stretches[0].due_ns.max(start_ns);
            progress.due_frac = described.stretches[0].due_frac;
            self.progress.write(which, progress);
            self.described.streams.write(which, described);
        }
    }

    fn finished(&self) -> bool {
        // SAFETY: `at` returns a valid, aligned entry; the field is read without a reference, because the program
        // writes it.
        unsafe { (&raw const (*self.control.at(0)).finished).read_volatile() != 0 }
    }

    /// Updates the counters of sent frames, and interrupts the sending thread when the program has finished. To be
    /// called regularly by another thread while `run` works. Fails if an interface is down.
    pub fn attend(&self, told: &[(Arc<Live>, &Link)], stop: &AtomicBool) -> Outcome<()> {
        let mut outcome = Ok(());
        for (which, (live, link)) in told.iter().enumerate() {
            outcome = outcome.and(link.check().map(|_| ()));
            // SAFETY: `at` returns a valid, aligned entry; the field is read without a reference, because the program
            // writes it.
            let sent = unsafe { (&raw const (*self.progress.at(which)).sent).read_volatile() };
            live.sent.store(sent, Ordering::Relaxed);
        }
        if stop.load(Ordering::Relaxed) || outcome.is_err() {
            // SAFETY: `at` returns a valid, aligned entry, and the program only reads this field.
            unsafe { (&raw mut (*self.control.at(0)).stop).write_volatile(1) };
        }
        let thread = self.thread.load(Ordering::Acquire);
        if thread != 0 && self.finished() {
            // SAFETY: tgkill(2) takes no pointers. It signals a thread of this process, which has a handler for the
            // signal, and fails if the thread has ended.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGUSR1) };
        }
        outcome
    }

    /// Sends from the calling thread until the program has finished.
    pub fn run(&self, cpu: Option<usize>) -> Outcome<Vec<String>> {
        let notes = threads::pin_if_asked("sender", cpu);
        threads::no_timer_slack();
        wake_on_user_signal();
        // SAFETY: gettid(2) takes no pointers.
        let thread = unsafe { libc::syscall(libc::SYS_gettid) } as i32;
        self.thread.store(thread, Ordering::Release);
        let start_ns = self.control.read(0).start_ns;
        let begin_ns = start_ns.saturating_sub(AHEAD_NS);
        while monotonic_ns() < begin_ns {
            sleep_until(begin_ns);
        }
        let outcome = loop {
            // SAFETY: `at` returns a valid, aligned entry, which no program is using now.
            unsafe { (&raw mut (*self.control.at(0)).position).write_volatile(0) };
            match object::run_live(self.program, &self.longest, self.batch) {
                Err(error) if error.raw_os_error() != Some(libc::EINTR) => {
                    break Err(Failure::io("sending live frames", &error));
                }
                _ if self.finished() => break Ok(notes),
                _ => {}
            }
        };
        self.thread.store(0, Ordering::Release);
        threads::SENDERS.book();
        outcome
    }

    /// Returns the report of each stream.
    pub fn reports(&self, streams: Vec<Outgoing>) -> Vec<SendReport> {
        let numbered = streams.into_iter().enumerate();
        numbered
            .map(|(which, stream)| self.report(which, stream))
            .collect()
    }

    fn report(&self, which: usize, stream: Outgoing) -> SendReport {
        let progress = self.progress.read(which);
        let mut report = stream.report;
        report.sent = progress.sent;
        report.first_tx_ns = progress.first_tx_ns;
        report.last_tx_ns = progress.last_tx_ns;
        report.last_left_ns = progress.last_tx_ns;
        let tagged = progress.tagged.checked_sub(1);
        report.tagged = tagged.map(|index| (index, progress.tagged_ns));
        report.late_frames = progress.late_frames;
        take_slots(&mut report.lateness, |slot| {
            self.lateness.read(which * HDR_SLOTS + slot)
        });
        let left_over = stream
            .schedule
            .planned()
            .is_some_and(|planned| progress.sent < planned);
        report.cut_ns = (left_over && self.control.read(0).stop == 0).then_some(stream.until_ns);
        report.stalls = stalls(&progress);
        report.stalls_more = progress.stalls_more;
        report.stalls_more_ns = progress.stalls_more_ns;
        report.marks = (0..progress.marks as usize)
            .map(|place| self.marks.read(which * MARKS + place))
            .map(|mark| (mark.frame, mark.at_ns))
            .collect();
        report.schedule = stream.schedule;
        stream.live.sent.store(report.sent, Ordering::Relaxed);
        stream
            .live
            .last_tx_ns
            .store(report.last_tx_ns.max(1), Ordering::Release);
        report
    }
}

/// Returns the stalls of a stream, including one that has not ended.
fn stalls(progress: &Progress) -> Vec<TxStall> {
    let mut stalls: Vec<TxStall> = progress.stall[..progress.stalls as usize]
        .iter()
        .map(|stall| TxStall {
            at_ns: stall.at_ns,
            ms: stall.paused_ns as f64 / 1e6,
            until_ns: stall.until_ns,
        })
        .collect();
    if progress.stall_at_ns != 0 {
        stalls.push(TxStall {
            at_ns: progress.stall_at_ns,
            ms: progress.stall_paused_ns as f64 / 1e6,
            until_ns: progress.last_tx_ns,
        });
    }
    stalls
}

/// Returns the number of frames of a batch, according to the highest rate of the streams together.
fn batch_of(streams: &[Outgoing]) -> u32 {
    let rate: f64 = streams
        .iter()
        .map(|stream| stream.schedule.least_interval_ns())
        .map(|interval| {
            if interval > 0.0 {
                1.0 / interval
            } else {
                f64::INFINITY
            }
        })
        .sum();
    (BATCH_NS * rate).clamp(2.0, f64::from(LARGEST_BATCH)) as u32
}
