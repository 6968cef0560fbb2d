// SPDX-License-Identifier: Apache-2.0
//! The receiver in the kernel: a native XDP program counts intact frames, and user space judges all other frames.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aya::Ebpf;
use aya::maps::RingBuf;
use aya::programs::Xdp;
use aya::programs::xdp::{XdpFlags, XdpLink};

use crate::count::arrivals::Arrivals;
use crate::count::histogram::take_slots;
use crate::failure::{Failure, Outcome};
use crate::frame::octets::FCS;
use crate::frame::test_header::{RunKey, pattern};
use crate::host::netns::Netns;
use crate::host::threads;
use crate::protocol::Gap;
use crate::receive::port_count::PortCount;
use crate::receive::stream_count::{SLICES, SliceSum, StreamCount};
use crate::receive::verify::Expected;
use crate::wire::RxFrame;
use crate::xdp::layout::{
    self, BIN_NS, BINS, Count, ExpectedSize, HDR_SLOTS, LONGEST, Pattern, ReceiveControl, STREAMS, VARIANTS,
    machine_sum,
};
use crate::xdp::object::{self, Mapped};

const PAUSE: Duration = Duration::from_millis(2);
/// The bins of the tail begin this long before the planned end of sending.
const TAIL_LEAD_NS: u64 = 50_000_000;
const SAMPLE_HEADER: usize = 16;
/// Words of the first program's bitmap: it has bits for four million frames. A trial with more gets a larger program.
const FIRST_WORDS: u32 = 1 << 16;

/// The program at a port. If a trial needs a larger bitmap, a new program replaces it. If that fails in the middle, there
/// is neither a program nor a link, and the next trial begins with a new one.
pub struct KernelReceiver {
    index: u32,
    object: Option<Loaded>,
    link: Option<XdpLink>,
}

/// A loaded program and its maps.
struct Loaded {
    object: Ebpf,
    control: Mapped<ReceiveControl>,
    counts: Mapped<Count>,
    arrivals: Mapped<layout::Arrivals>,
    latency: Mapped<u64>,
    tail: Mapped<u64>,
    arrived: Mapped<u64>,
    expected: Mapped<layout::Expected>,
    samples: RingBuf<aya::maps::MapData>,
    /// Start and width of the bins of each stream's tail.
    tail_ns: Vec<(u64, u64)>,
    bitmap_at: Vec<usize>,
}

/// Returns why XDP cannot receive these streams; None if it can.
fn unfit(count: &PortCount) -> Option<String> {
    let sizes = |expected: &Expected| expected.plain() && expected.sizes().len() > VARIANTS;
    let long = |expected: &Expected| expected.longest() > LONGEST;
    if count.expected.len() > STREAMS {
        Some(format!("more than {STREAMS} streams arrive at one port"))
    } else if count.expected.iter().any(sizes) {
        Some(format!("more than {VARIANTS} frame sizes"))
    } else if count.expected.iter().any(long) {
        Some(format!("frames of more than {} B", LONGEST + FCS))
    } else {
        None
    }
}

impl KernelReceiver {
    /// Attaches the program. It counts no streams until `begin`.
    pub fn open(index: u32, netns: &Netns) -> Outcome<Self> {
        let mut made = KernelReceiver {
            index,
            object: None,
            link: None,
        };
        made.replace(Loaded::new(FIRST_WORDS)?, netns)?;
        Ok(made)
    }

    /// Starts to count a trial's streams. Fails if XDP cannot receive them.
    pub fn begin(&mut self, count: &PortCount, key: RunKey, netns: &Netns) -> Outcome<()> {
        if let Some(what) = unfit(count) {
            return Err(Failure::new(
                format!("XDP cannot receive this: {what}"),
                "\"rx\": \"af_packet\" (in a plan: generator: {native: {rx: af_packet}})",
            ));
        }
        let words: usize = count.expected.iter().map(words_of).sum();
        let room = self.object.as_ref().map_or(0, |loaded| loaded.arrived.entries());
        if words > room || self.link.is_none() {
            let words = words.max(FIRST_WORDS as usize);
            self.replace(Loaded::new(room_for(words, available_bytes())?)?, netns)?;
        }
        if let Some(loaded) = &mut self.object {
            loaded.begin(count, key);
        }
        Ok(())
    }

    /// Gives the program the time of the start, the planned duration of sending of each stream (0: a burst) and the
    /// latest time at which a frame leaves. To be called before the start.
    pub fn set_times(
        &mut self,
        start_ns: u64,
        slice_ns: u64,
        durations_ns: &[u64],
        deadline_ns: u64,
        count: &PortCount,
    ) {
        let Some(loaded) = &mut self.object else { return };
        for (which, duration_ns) in durations_ns.iter().enumerate() {
            let mut expected = loaded.expected.read(which);
            expected.start_ns = start_ns;
            expected.slice_ns = slice_ns;
            expected.tag_ns = count.streams[which].tag_ns;
            expected.tail_ns = (start_ns + duration_ns).saturating_sub(TAIL_LEAD_NS);
            let tail_ns = deadline_ns.saturating_sub(expected.tail_ns);
            expected.bin_ns = BIN_NS.max(tail_ns.div_ceil(BINS as u64));
            loaded.tail_ns[which] = (expected.tail_ns, expected.bin_ns);
            loaded.expected.write(which, expected);
        }
    }

    /// Attaches a program in place of the previous one, which stays if the kernel does not take the new one.
    fn replace(&mut self, mut loaded: Loaded, netns: &Netns) -> Outcome<()> {
        object::load_program(program_of(&mut loaded.object)?)?;
        let (index, old) = (self.index, self.link.take());
        let object = &mut loaded.object;
        let attached = netns.enter(move || {
            let program = program_of(object)?;
            let attached = match old {
                Some(link) => program.attach_to_link(link),
                None => program.attach_to_if_index(index, XdpFlags::DRV_MODE),
            };
            let id = attached.map_err(|error| object::refused("attaching", &error))?;
            program
                .take_link(id)
                .map_err(|error| object::refused("attaching", &error))
        });
        // The old link is gone in any case, and the old program, which receives nothing without it, goes with it.
        self.object = None;
        self.link = Some(attached?);
        self.object = Some(loaded);
        Ok(())
    }

    /// Judges the frames that the program hands over, until `stop`. Then adds the program's counts to `count`.
    pub fn run(
        &mut self,
        cpu: Option<usize>,
        count: &mut PortCount,
        stop: &AtomicBool,
    ) -> Outcome<Vec<String>> {
        let notes = threads::pin_if_asked("receiver", cpu);
        let Some(loaded) = &mut self.object else {
            return Err(Failure::new("the port is not receiving", "report this"));
        };
        while !stop.load(Ordering::Relaxed) {
            loaded.judge(count);
            for (which, stream) in count.streams.iter().enumerate() {
                let there = loaded.counts.read(which);
                stream.publish_with(
                    there.received + there.duplicated,
                    there.received,
                    there.last_rx_ns,
                );
            }
            std::thread::sleep(PAUSE);
        }
        loaded.judge(count);
        loaded.take_over(count);
        threads::RECEIVERS.book();
        Ok(notes)
    }
}

/// Returns the program of an object.
fn program_of(object: &mut Ebpf) -> Outcome<&mut Xdp> {
    object
        .program_mut("receive")
        .and_then(|program| program.try_into().ok())
        .ok_or_else(|| Failure::new("the receiving program is not there", "report this"))
}

/// Converts the arrivals of one stream from the program's layout.
fn arrivals_of(there: &layout::Arrivals) -> Arrivals {
    let gap = |gap: &layout::Gap| Gap {
        from_ns: gap.from_ns,
        to_ns: gap.to_ns,
    };
    Arrivals {
        first_ns: there.first_ns,
        last_ns: there.last_ns,
        longest: (there.longest.to_ns != 0).then(|| gap(&there.longest)),
        over_ns: there.over_ns,
        listed: there.gap[..there.listed as usize].iter().map(gap).collect(),
        more: there.more,
        torn: false,
    }
}

/// Returns the number of 64-bit words of a bitmap with one bit for each sequence number that a stream can use.
fn words_of(expected: &Expected) -> usize {
    expected.sequences().div_ceil(64) as usize
}

/// Returns the number of words of a new bitmap for a trial that needs `words`: a power of two, so that the next trials
/// have room, too, or no more than needed if there is no memory for that. Fails if there is not even memory for those, of
/// which the kernel and the count after the trial need a copy each.
fn room_for(words: usize, available_bytes: u64) -> Outcome<u32> {
    let fits = |words: &u32| 16 * u64::from(*words) <= available_bytes;
    let sizes = [words.next_power_of_two(), words];
    let found = sizes
        .into_iter()
        .find_map(|size| u32::try_from(size).ok().filter(fits));
    found.ok_or_else(|| {
        let (needed, available) = ((words as u64).div_ceil(1 << 16), available_bytes >> 20);
        Failure::new(
            format!(
                "receiving by XDP needs {needed} MiB of memory for the numbers of the trial's frames, of {available} MiB \
                 that are available (at most 65536 MiB)"
            ),
            "make the trial shorter or slower, or receive by \"rx\": \"af_packet\"",
        )
    })
}

/// Returns the memory that programs can still get, bytes; all ones if the kernel does not tell.
fn available_bytes() -> u64 {
    let told = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = told
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib * 1024)
}

impl Loaded {
    fn new(words: u32) -> Outcome<Self> {
        let mut object = object::load(object::RECEIVE, &[("arrived", words)], &[])?;
        let samples = object
            .take_map("samples")
            .and_then(|map| RingBuf::try_from(map).ok())
            .ok_or_else(|| Failure::new("the ring for samples is not there", "report this"))?;
        let shared: Mapped<Pattern> = Mapped::of(&object, "pattern")?;
        let mut octets = Pattern {
            bytes: [0; LONGEST + 8],
        };
        octets.bytes.copy_from_slice(&pattern(LONGEST + 8));
        shared.write(0, octets);
        Ok(Loaded {
            control: Mapped::of(&object, "control")?,
            counts: Mapped::of(&object, "counts")?,
            arrivals: Mapped::of(&object, "arrivals")?,
            latency: Mapped::of(&object, "latency")?,
            tail: Mapped::of(&object, "tail")?,
            arrived: Mapped::of(&object, "arrived")?,
            expected: Mapped::of(&object, "expected")?,
            samples,
            tail_ns: Vec::new(),
            bitmap_at: Vec::new(),
            object,
        })
    }

    /// Clears the counts, and lets the program count these streams.
    fn begin(&mut self, count: &PortCount, key: RunKey) {
        let mut control = self.control.read(0);
        control.streams = 0; // no frame counts for a stream until everything is in place
        self.control.write(0, control);
        while self.samples.next().is_some() {}
        self.clear(count);
        self.bitmap_at.clear();
        let mut base = 0;
        for (which, expected) in count.expected.iter().enumerate() {
            self.bitmap_at.push(base);
            let described = describe(expected, count.lead[which], base);
            self.expected.write(which, described);
            base += words_of(expected);
        }
        self.control.write(
            0,
            ReceiveControl {
                key: key.into(),
                total: 0,
                stale: 0,
                odd: 0,
                unjudged: 0,
                streams: count.expected.len() as u32,
                unused: 0,
            },
        );
    }

    /// Sets all counts of these streams to zero.
    fn clear(&mut self, count: &PortCount) {
        let streams = count.expected.len();
        self.counts.clear(0..streams);
        self.arrivals.clear(0..streams);
        for (lead, arrivals) in count.arrivals.iter().enumerate() {
            let over_ns = arrivals.over_ns;
            self.arrivals.write(
                lead,
                layout::Arrivals {
                    over_ns,
                    ..self.arrivals.read(lead)
                },
            );
        }
        self.latency.clear(0..streams * HDR_SLOTS);
        self.tail.clear(0..streams * BINS);
        self.arrived.clear(0..count.expected.iter().map(words_of).sum());
        self.tail_ns = vec![(0, BIN_NS); streams];
    }

    /// Judges the frames that the program has handed over.
    fn judge(&mut self, count: &mut PortCount) {
        while let Some(sample) = self.samples.next() {
            let number = |at: usize| u32::from_ne_bytes(sample[at..at + 4].try_into().unwrap_or([0; 4]));
            let at_ns = u64::from_ne_bytes(sample[..8].try_into().unwrap_or([0; 8]));
            let captured = number(12) as usize;
            count.count(&RxFrame {
                bytes: &sample[SAMPLE_HEADER..SAMPLE_HEADER + captured],
                wire_length: number(8) as usize,
                at_ns,
                checksum_pending: false,
                vlan_tagged: false,
            });
        }
    }

    /// Adds the program's counts to `count`.
    fn take_over(&self, count: &mut PortCount) {
        let control = self.control.read(0);
        count.total += control.total - (control.odd - control.unjudged);
        count.foreign += control.stale;
        count.overrun += control.unjudged;
        for (lead, arrivals) in count.arrivals.iter_mut().enumerate() {
            arrivals.take_over(arrivals_of(&self.arrivals.read(lead)));
        }
        for (which, stream) in count.streams.iter_mut().enumerate() {
            let room = words_of(&count.expected[which]);
            count.faults.extend(self.take_over_stream(which, room, stream));
        }
    }

    /// Adds the program's counts of one stream; returns a fault if they contradict each other.
    fn take_over_stream(&self, which: usize, room: usize, stream: &mut StreamCount) -> Option<String> {
        let there = self.counts.read(which);
        let bitmap = numbers(there.highest, there.received, room, |word| {
            self.arrived.read(self.bitmap_at[which] + word)
        });
        let noted: u64 = bitmap.iter().map(|word| u64::from(word.count_ones())).sum();
        let last = (bitmap.iter().enumerate().rev()).find(|&(_, &word)| word != 0);
        let highest = last.map_or(0, |(place, word)| {
            place as u64 * 64 + u64::from(64 - word.leading_zeros())
        });
        stream.sequence.take_over(
            bitmap,
            there.duplicated,
            there.reordered,
            highest.max(there.highest),
        );
        take_slots(&mut stream.latency, |slot| {
            self.latency.read(which * HDR_SLOTS + slot)
        });
        stream.last_rx_ns = stream.last_rx_ns.max(there.last_rx_ns);
        stream.early += there.early;
        if let Some(tagged) = there.tagged.checked_sub(1) {
            stream.tag(tagged, there.tagged_latency_ns);
        }
        for (place, slice) in there.slices.iter().enumerate().take(SLICES) {
            stream.add_slice(
                place,
                SliceSum {
                    frames: slice.frames,
                    min_ns: slice.min_ns,
                    total_ns: slice.total_ns,
                },
            );
        }
        let bins = (0..BINS)
            .map(|bin| self.tail.read(which * BINS + bin))
            .collect::<Vec<_>>();
        let (tail_ns, bin_ns) = self.tail_ns[which];
        stream.take_tail(tail_ns, bin_ns, &bins, there.beyond);
        (noted < there.received).then(|| {
            format!(
                "the receiving program counted {} frames of a stream, and noted the numbers of {noted}",
                there.received
            )
        })
    }
}

/// Reads the words of a stream's bitmap, at most `room`, until they have all `received` numbers. They may lie beyond
/// `highest`: if several CPUs write it at the same time, the lower value may be written last.
fn numbers(highest: u64, received: u64, room: usize, word: impl Fn(usize) -> u64) -> Vec<u64> {
    let (mut words, mut noted) = (Vec::new(), 0);
    while words.len() < room && (noted < received || words.len() * 64 < highest as usize) {
        let next = word(words.len());
        noted += u64::from(next.count_ones());
        words.push(next);
    }
    words
}

/// Describes a stream to the program. The bits of its sequence numbers begin at word `base` of the bitmap.
fn describe(from: &Expected, lead: usize, base: usize) -> layout::Expected {
    let mut sizes = [ExpectedSize {
        length: 0,
        unused: 0,
        pattern_sum: 0,
    }; VARIANTS];
    // Frames with other headers are judged in user space, so the program gets no sizes of them.
    let known = if from.plain() { from.sizes().len() } else { 0 };
    for (to, (length, sum)) in sizes.iter_mut().zip(from.sizes().take(known)) {
        to.length = length as u32;
        to.pattern_sum = machine_sum(sum);
    }
    layout::Expected {
        first_sequence: from.first_sequence(),
        sequences: from.sequences(),
        start_ns: 0,
        slice_ns: 1,
        tail_ns: 0,
        bin_ns: BIN_NS,
        tag_ns: u64::MAX,
        lead: lead as u32,
        unused_too: 0,
        bitmap_at: base as u64,
        lengths: known as u32,
        id: from.stream(),
        ipv6: u8::from(from.ipv6()),
        unused: 0,
        sizes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A receiver that has lost its program does not begin a trial without one: it attaches a new one, or fails, and then
    /// tries again in the next trial. There is no interface 0.
    #[test]
    fn no_trial_begins_without_a_program() {
        let mut deaf = KernelReceiver {
            index: 0,
            object: None,
            link: None,
        };
        let netns = Netns::open(None).unwrap();
        for _ in 0..2 {
            assert!(
                deaf.begin(&PortCount::default(), RunKey::new(1, 2), &netns)
                    .is_err()
            );
            assert!(deaf.object.is_none() && deaf.link.is_none());
        }
    }

    /// Numbers beyond a `highest` that another CPU has overwritten are read, and no more words than there are.
    #[test]
    fn every_number_that_arrived_is_read() {
        let bits = |word: usize| match word {
            0..15 => u64::MAX,
            15 => (1 << 40) - 1,
            _ => 0,
        };
        let noted = |highest, received, room| -> u32 {
            let words = numbers(highest, received, room, bits);
            assert!(words.len() <= room);
            words.iter().map(|word| word.count_ones()).sum()
        };
        assert_eq!(noted(10, 1000, 1 << 16), 1000);
        assert_eq!(noted(1000, 1000, 16), 1000);
        assert_eq!(noted(1000, 990, 16), 1000, "frames that arrive meanwhile");
        assert_eq!(noted(1000, 1001, 20), 1000, "a number that was never noted");
        assert_eq!(numbers(0, 0, 16, bits).len(), 0);
    }

    /// A bitmap is as large as needed, with room for more if there is memory, and otherwise refused with the memory needed.
    #[test]
    fn a_bitmap_has_room_or_is_refused() {
        let gib = 1 << 30;
        assert_eq!(room_for(100_000, gib).unwrap(), 1 << 17);
        assert_eq!(room_for(100_000, 1_700_000).unwrap(), 100_000);
        assert_eq!(room_for((1 << 31) + 1, u64::MAX).unwrap(), (1 << 31) + 1);
        for (words, available, needed) in [
            (1 << 26, gib, "1024 MiB of memory"),
            ((1 << 26) + 1, gib, "1025 MiB of memory"),
            (1 << 32, u64::MAX, "65536 MiB of memory"),
        ] {
            match room_for(words, available) {
                Ok(room) => assert_eq!((room as usize, available), (words, gib)),
                Err(failure) => assert!(failure.message.contains(needed), "{failure}"),
            }
        }
        assert!(room_for(1 << 32, u64::MAX).is_err() && room_for((1 << 26) + 1, gib).is_err());
    }
}
