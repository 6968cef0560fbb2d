// SPDX-License-Identifier: Apache-2.0
//! Sending by live frames: a program in the kernel paces, numbers, stamps and redirects each one.

use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use aya::Ebpf;
use aya::maps::MapData;
use aya::maps::xdp::DevMap;
use aya::programs::Xdp;

use crate::clock::monotonic_ns;
use crate::failure::{Failure, Outcome};
use crate::frame::{RunKey, Template};
use crate::frames::Frames;
use crate::netlink::Link;
use crate::pace::Schedule;
use crate::port::netns::Netns;
use crate::protocol::TxStall;
use crate::sender::{Live, MARK_NS, Outgoing, SendReport};
use crate::xdp::layout::{
    Address, Frame, HDR_SLOTS, LONGEST, Mark, ORDER, Progress, STEPS, STREAMS, SendControl, SendStream,
    SendStretch, SendVariant, VARIANTS, machine_sum,
};
use crate::xdp::object::{self, Mapped};

/// So long the program waits for a departure before others may have the CPU.
const SLICE_NS: u64 = 10_000;
/// The kernel waits for an RCU grace period, up to 12 ms were seen, before it runs a program again and again
/// (bpf_dispatcher_change_prog); what is begun so early is ready at the first departure, and waits for it.
const AHEAD_NS: u64 = 25_000_000;
/// A batch has room for the frames of so long a time: waking the CPU that takes them may last half of it.
const BATCH_NS: f64 = 16_000.0;
/// Smaller batches cost a fifth, larger ones bring nothing.
const LARGEST_BATCH: u32 = 64;
/// Times kept of when which frame left, for each stream; in longer trials they are farther apart.
const MARKS: usize = 1 << 15;

/// Why these streams cannot be sent so; None if they can.
fn unfit(streams: &[Outgoing]) -> Option<String> {
    if streams.len() > STREAMS {
        return Some(format!("more than {STREAMS} streams leave from one CPU"));
    }
    streams.iter().find_map(|stream| {
        if stream.frames.longest().len() > LONGEST {
            return Some(format!("frames of more than {} B", LONGEST + crate::frame::FCS));
        }
        let template = match &stream.frames {
            Frames::Test(template) => template,
            Frames::Raw(_) => return None,
            Frames::Sealed(..) => return Some("ESP".into()),
        };
        let parts = template.parts();
        if parts.order.len() > ORDER || parts.variants.len() > VARIANTS {
            Some(format!(
                "a mix of more than {ORDER} frames, or of {VARIANTS} different ones"
            ))
        } else {
            None
        }
    })
}

const NOTHING: SendStream = SendStream {
    planned: 0,
    until_ns: u64::MAX,
    tag_ns: u64::MAX,
    first_sequence: 0,
    step: 0,
    phase: 0,
    address_base: 0,
    template_base: 0,
    flows: 0,
    ports: 0,
    order_length: 0,
    id: 0,
    ipv6: 0,
    dont_fragment: 0,
    raw: 0,
    paced: 0,
    stretches: [SendStretch {
        first: 0,
        due_ns: 0,
        due_frac: 0,
        interval_ns: 0,
        interval_frac: 0,
        catch_up_ns: 0,
    }; STEPS],
    variants: [SendVariant {
        l3: 0,
        l4: 0,
        payload: 0,
        src_port: 0,
        tcp: 0,
        unused: [0; 7],
        ip_sum: 0,
        l4_sum: 0,
    }; VARIANTS],
};

/// Where a stream leaves.
pub struct LivePort<'a> {
    /// Of its interface.
    pub index: u32,
    pub netns: &'a Netns,
    pub link: &'a Link,
}

/// A program and its memory, used for trial after trial: to have it verified takes longer than a short trial.
pub struct LiveSender {
    object: Ebpf,
    program: RawFd,
    control: Mapped<SendControl>,
    streams: Mapped<SendStream>,
    templates: Mapped<Frame>,
    order: Mapped<u8>,
    addresses: Mapped<Address>,
    progress: Mapped<Progress>,
    lateness: Mapped<u64>,
    marks: Mapped<Mark>,
    longest: Vec<u8>,
    batch: u32,
    thread: AtomicI32,
}

/// Flows and kinds of frames of all streams together.
fn needs(streams: &[Outgoing]) -> (usize, usize) {
    let mut found = (0, 0);
    for stream in streams {
        match &stream.frames {
            Frames::Test(template) | Frames::Sealed(template, _) => {
                let parts = template.parts();
                found.0 += parts.address_sums.len();
                found.1 += parts.variants.len();
            }
            Frames::Raw(frames) => found.1 += frames.all().len(),
        }
    }
    (found.0.max(1), found.1)
}

impl LiveSender {
    /// One of `idle` that has room for the streams, or a new one.
    pub fn get(idle: &mut Vec<LiveSender>, streams: &[Outgoing]) -> Outcome<Self> {
        if let Some(what) = unfit(streams) {
            return Err(Failure::new(
                format!("XDP cannot send this: {what}"),
                "\"tx\": \"af_packet\"",
            ));
        }
        let (addresses, templates) = needs(streams);
        let fits = |s: &LiveSender| s.addresses.entries() >= addresses && s.templates.entries() >= templates;
        match idle.iter().position(fits) {
            Some(place) => Ok(idle.swap_remove(place)),
            None => {
                idle.clear();
                LiveSender::load(addresses.next_power_of_two(), templates.next_power_of_two())
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
            streams: Mapped::of(&object, "streams")?,
            templates: Mapped::of(&object, "templates")?,
            order: Mapped::of(&object, "order")?,
            addresses: Mapped::of(&object, "addresses")?,
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

    /// Ready for these streams, with nothing left of those before. `ports`: one for each stream; `longest_ns`: so
    /// long a trial may last.
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
        self.describe(streams);
        self.control.write(
            0,
            SendControl {
                key: key.parts(),
                start_ns: 0,
                slice_ns: SLICE_NS,
                mark_ns: MARK_NS.max(longest_ns / MARKS as u64 + 1),
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

    fn describe(&self, streams: &[Outgoing]) {
        let (mut address_base, mut template_base) = (0, 0);
        for (which, stream) in streams.iter().enumerate() {
            let mut described = SendStream {
                planned: stream.schedule.planned().unwrap_or(u64::MAX),
                first_sequence: stream.first_sequence,
                step: 1,
                phase: 0,
                address_base: address_base as u32,
                template_base: template_base as u32,
                paced: u32::from(stream.schedule.is_paced()),
                ..NOTHING
            };
            match &stream.frames {
                // What is sealed was refused before.
                Frames::Test(template) | Frames::Sealed(template, _) => {
                    self.describe_test(which, template, &mut described);
                    address_base += template.parts().address_sums.len();
                    template_base += template.parts().variants.len();
                }
                Frames::Raw(frames) => {
                    for (number, frame) in frames.all().iter().enumerate() {
                        self.write_template(template_base + number, frame);
                    }
                    described.raw = frames.all().len() as u32;
                    template_base += frames.all().len();
                }
            }
            self.streams.write(which, described);
        }
    }

    fn write_template(&self, place: usize, bytes: &[u8]) {
        let mut frame = Frame {
            length: bytes.len() as u32,
            unused: 0,
            bytes: [0; LONGEST],
        };
        frame.bytes[..bytes.len()].copy_from_slice(bytes);
        self.templates.write(place, frame);
    }

    fn describe_test(&self, which: usize, template: &Template, described: &mut SendStream) {
        let parts = template.parts();
        for (place, &variant) in parts.order.iter().enumerate() {
            self.order.write(which * ORDER + place, variant as u8);
        }
        let width = parts.addresses.len() / parts.address_sums.len();
        for (flow, &sum) in parts.address_sums.iter().enumerate() {
            let mut bytes = [0; 32];
            bytes[..width].copy_from_slice(&parts.addresses[flow * width..(flow + 1) * width]);
            let sum = machine_sum(sum);
            self.addresses
                .write(described.address_base as usize + flow, Address { bytes, sum });
        }
        for (number, (to, from)) in described.variants.iter_mut().zip(parts.variants).enumerate() {
            self.write_template(described.template_base as usize + number, &from.bytes);
            *to = SendVariant {
                l3: from.place.l3 as u16,
                l4: from.place.l4 as u16,
                payload: from.place.payload as u16,
                src_port: from.src_port,
                tcp: u8::from(from.place.tcp),
                unused: [0; 7],
                ip_sum: machine_sum(from.ip_sum),
                l4_sum: machine_sum(from.l4_sum),
            };
        }
        described.flows = parts.address_sums.len() as u32;
        described.ports = parts.ports as u32;
        described.order_length = parts.order.len() as u32;
        described.id = parts.stream;
        described.ipv6 = u8::from(parts.ipv6);
        described.dont_fragment = u8::from(parts.dont_fragment);
    }

    /// When the first frame is due; the streams know the rest. Before `run`.
    pub fn set_times(&self, streams: &[Outgoing], start_ns: u64) {
        let mut control = self.control.read(0);
        control.start_ns = start_ns;
        self.control.write(0, control);
        for (which, stream) in streams.iter().enumerate() {
            let mut described = self.streams.read(which);
            described.until_ns = stream.until_ns;
            described.tag_ns = stream.tag_ns();
            described.stretches = stretches(&stream.schedule);
            let mut progress = self.progress.read(which);
            progress.due_ns = described.stretches[0].due_ns.max(start_ns);
            progress.due_frac = described.stretches[0].due_frac;
            self.progress.write(which, progress);
            self.streams.write(which, described);
        }
    }

    fn finished(&self) -> bool {
        // SAFETY: a field of a valid entry.
        unsafe { (&raw const (*self.control.at(0)).finished).read_volatile() != 0 }
    }

    /// Tells the streams' watchers how far they are; ends the run when all has been sent. Called now and then.
    /// A failure if a port is down.
    pub fn attend(&self, told: &[(Arc<Live>, &Link)], stop: &AtomicBool) -> Outcome<()> {
        let mut outcome = Ok(());
        for (which, (live, link)) in told.iter().enumerate() {
            outcome = outcome.and(link.check().map(|_| ()));
            // SAFETY: a field of a valid entry.
            let sent = unsafe { (&raw const (*self.progress.at(which)).sent).read_volatile() };
            live.sent.store(sent, Ordering::Relaxed);
        }
        if stop.load(Ordering::Relaxed) || outcome.is_err() {
            // SAFETY: a field of a valid entry; the program only reads it.
            unsafe { (&raw mut (*self.control.at(0)).stop).write_volatile(1) };
        }
        let thread = self.thread.load(Ordering::Acquire);
        if thread != 0 && self.finished() {
            // SAFETY: a signal to a thread of this process; a thread that has ended makes it fail.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGUSR1) };
        }
        outcome
    }

    /// Sends from the calling thread until all is done.
    pub fn run(&self, cpu: Option<usize>) -> Outcome<Vec<String>> {
        let mut notes = Vec::new();
        if let Some(cpu) = cpu {
            if let Err(error) = crate::threads::pin(cpu) {
                notes.push(format!("sender not pinned to CPU {cpu}: {error}"));
            }
        }
        crate::threads::no_timer_slack();
        crate::signals::wake_on_user_signal();
        // SAFETY: gettid has no arguments.
        self.thread.store(
            unsafe { libc::syscall(libc::SYS_gettid) } as i32,
            Ordering::Release,
        );
        let start_ns = self.control.read(0).start_ns;
        let begin_ns = start_ns.saturating_sub(AHEAD_NS);
        while monotonic_ns() < begin_ns {
            crate::clock::sleep_until(begin_ns);
        }
        let outcome = loop {
            // SAFETY: a field of a valid entry, which no program is using.
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
        crate::threads::SENDERS.book();
        outcome
    }

    /// What was sent, stream by stream.
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
        for slot in 0..HDR_SLOTS {
            let count = self.lateness.read(which * HDR_SLOTS + slot);
            if count > 0 {
                let _ = report
                    .lateness
                    .record_n(crate::latency::value_of_slot(slot), count); // within bounds
            }
        }
        let left_over = stream
            .schedule
            .planned()
            .is_some_and(|planned| progress.sent < planned);
        report.cut_ns = (left_over && self.control.read(0).stop == 0).then_some(stream.until_ns);
        report.stalls = progress.stall[..progress.stalls as usize]
            .iter()
            .map(|stall| TxStall {
                at_ns: stall.at_ns,
                ms: stall.paused_ns as f64 / 1e6,
                until_ns: stall.until_ns,
            })
            .collect();
        report.stalls_more = progress.stalls_more;
        if progress.stall_at_ns != 0 {
            report.stalls.push(TxStall {
                at_ns: progress.stall_at_ns,
                ms: progress.stall_paused_ns as f64 / 1e6,
                until_ns: progress.last_tx_ns,
            });
        }
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

/// The rates of a schedule as the program goes through them: those at which no frame is due are left out.
fn stretches(schedule: &Schedule) -> [SendStretch; STEPS] {
    let fraction = |ns: f64| (ns.fract() * 4_294_967_296.0) as u64;
    let mut found = [SendStretch {
        first: u64::MAX,
        ..NOTHING.stretches[0]
    }; STEPS];
    let all = schedule.stretches();
    let beginnings = all.iter().enumerate().filter(|&(place, stretch)| {
        let end = all
            .get(place + 1)
            .map_or(schedule.planned(), |next| Some(next.first));
        end.is_none_or(|end| stretch.first < end)
    });
    for (to, (_, from)) in found.iter_mut().zip(beginnings) {
        *to = SendStretch {
            first: from.first,
            due_ns: schedule.start_ns() + from.due_ns as u64,
            due_frac: fraction(from.due_ns),
            interval_ns: from.interval_ns as u64,
            interval_frac: fraction(from.interval_ns),
            catch_up_ns: (from.interval_ns / crate::pace::CATCH_UP) as u64,
        };
    }
    found
}

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
