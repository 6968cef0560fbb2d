// SPDX-License-Identifier: Apache-2.0
//! The arrivals of one stream: counts and latencies, in total and in slices by the time of sending.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hdrhistogram::Histogram;

use crate::count::histogram::histogram;
use crate::count::live::{Live, tag_ns};
use crate::count::sequence::SequenceCount;
use crate::esp::sealed_ahead::Departed;
use crate::failure::Outcome;
use crate::frame::test_header::NUMBER_MASK;
use crate::protocol::Slice;

/// Number of slices of equal length into which a trial is divided, by the time of sending.
pub const SLICES: usize = 20;

/// The latencies of the frames of one slice.
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

/// The arrivals of one stream.
#[derive(Debug)]
pub struct StreamCount {
    pub sequence: SequenceCount,
    pub latency: Histogram<u64>,
    pub after_stop: u64,
    /// Number of frames that arrived before they left. The clocks of their sender and receiver differ, so no latency is
    /// known.
    pub early: u64,
    pub last_rx_ns: u64,
    tag_at_s: Option<f64>,
    pub tag_ns: u64,
    /// The lowest number of the frames that were sent at tag_ns or later and arrived, and the latency of that frame,
    /// ns.
    pub tagged: Option<(u64, u64)>,
    slices: [SliceSum; SLICES],
    start_ns: u64,
    slice_ns: u64,
    live: Arc<Live>,
    /// The times at which the frames were sent, if the frames do not contain them.
    pub departed: Option<Departed>,
}

/// Returns the full time, near `now_ns`, of which a frame carries the low 48 bits.
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
            latency: histogram()?,
            after_stop: 0,
            early: 0,
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

    /// Sets the time of the start.
    pub fn begin_at(&mut self, start_ns: u64) {
        self.start_ns = start_ns;
        self.tag_ns = tag_ns(start_ns, self.tag_at_s);
    }

    /// Notes the arrival of a frame that was sent at tag_ns or later. The one with the lowest number is kept.
    pub fn tag(&mut self, number: u64, latency_ns: u64) {
        if self.tagged.is_none_or(|(lowest, _)| number < lowest) {
            self.tagged = Some((number, latency_ns));
        }
    }

    /// Counts an intact frame; returns false if it is a duplicate.
    pub fn intact(&mut self, number: u64, time: u64, at_ns: u64) -> bool {
        if !self.sequence.intact(number) {
            return false;
        }
        let sent_ns = match &self.departed {
            Some(departed) => departed[number as usize].load(Ordering::Relaxed),
            None => whole_time(time, at_ns),
        };
        self.early += u64::from(sent_ns > at_ns);
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

    /// Updates the counters that the trial watches.
    pub fn publish(&self) {
        self.publish_with(0, 0, 0);
    }

    /// Updates the counters that the trial watches, with frames that are counted elsewhere in addition.
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

    /// Adds the counts of an XDP program for the frames that were sent in one slice of the trial.
    pub fn add_slice(&mut self, place: usize, slice: SliceSum) {
        self.slices[place].add(&slice);
    }

    /// Adds the frames that arrived after the last departure, from an XDP program's counts: arrivals in bins of
    /// `bin_ns` that begin at `from_ns`, and the number of arrivals after the last bin.
    pub fn take_tail(&mut self, from_ns: u64, bin_ns: u64, bins: &[u64], beyond: u64) {
        let last_tx_ns = self.live.last_tx_ns.load(Ordering::Acquire);
        if last_tx_ns == 0 || last_tx_ns > from_ns + bin_ns * bins.len() as u64 {
            return; // sending never ended, or it ended after the last bin, so the number is not known
        }
        let first = last_tx_ns.saturating_sub(from_ns).div_ceil(bin_ns) as usize;
        self.after_stop += bins[first..].iter().sum::<u64>() + beyond;
    }
}

/// Adds up the slices of several counts of one trial.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The upper bits of a tx time are computed from the time of arrival, on both sides of a wrap.
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

    /// A frame that arrives before it left is counted as such.
    #[test]
    fn early_frames_are_counted() {
        let mut count = StreamCount::new(0, 1_000, None, Arc::default()).unwrap();
        for (number, at_ns) in [(0, 501), (1, 500), (2, 499)] {
            assert!(count.intact(number, 500, at_ns));
        }
        assert_eq!((count.early, count.sequence.received), (1, 3));
    }

    /// Bins are counted from the last departure, and not at all if sending never ended.
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
