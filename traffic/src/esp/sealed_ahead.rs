// SPDX-License-Identifier: Apache-2.0
//! Frames that are sealed before the trial, because the cipher is too slow to seal a frame between two departures.
//!
//! Their test headers cannot contain the time of departure. So this time is stored separately, by frame number.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::esp::sealer::Sealer;
use crate::frame::template::Template;
use crate::host::clock::monotonic_ns;

const POLL_NS: u64 = 50_000_000;

/// The time at which each frame of a stream was sent, ns.
pub type Departed = Arc<[AtomicU64]>;

/// The sealed frames of a stream.
pub struct Ready {
    bytes: Vec<u8>,
    /// The end of each frame in `bytes`.
    ends: Vec<usize>,
    pub departed: Departed,
}

impl Ready {
    /// Seals a stream's frames; frame k ends in the buffer at `ends[k]`. `progress` gets the number of sealed frames
    /// and the number of all frames, and returns whether to continue.
    pub fn seal(
        sealer: &Sealer,
        template: &Template,
        first_sequence: u64,
        ends: Vec<usize>,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Self {
        Ready {
            bytes: sealed(sealer, template, first_sequence, &ends, progress),
            departed: ends.iter().map(|_| AtomicU64::new(0)).collect(),
            ends,
        }
    }

    /// Copies frame `index`, which leaves at `time`, to `out`; returns its length.
    pub fn write(&self, out: &mut [u8], index: u64, time: u64) -> usize {
        let index = index as usize;
        let from = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        let frame = &self.bytes[from..self.ends[index]];
        out[..frame.len()].copy_from_slice(frame);
        self.departed[index].store(time, Ordering::Relaxed);
        frame.len()
    }
}

/// Seals all frames with as many threads as there are CPUs; stops early if `progress` returns false.
fn sealed(
    sealer: &Sealer,
    template: &Template,
    first_sequence: u64,
    ends: &[usize],
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Vec<u8> {
    let mut bytes = vec![0; ends.last().copied().unwrap_or(0)];
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let share = ends.len().div_ceil(threads).max(1);
    let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let mut rest = bytes.as_mut_slice();
        let mut begun = 0;
        let mut working = Vec::new();
        for (which, ends) in ends.chunks(share).enumerate() {
            let end = ends.last().copied().unwrap_or(begun);
            let (part, after) = rest.split_at_mut(end - begun);
            let from = begun;
            (rest, begun) = (after, end);
            let (done, stop) = (&done, &stop);
            working.push(scope.spawn(move || {
                let mut plain = template.bytes().to_vec();
                let mut start = from;
                for (place, &end) in ends.iter().enumerate() {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let index = (which * share + place) as u64;
                    let length = template.write(&mut plain, index, first_sequence + index, 0);
                    sealer.seal(&plain[..length], index, &mut part[start - from..end - from]);
                    start = end;
                    done.fetch_add(1, Ordering::Relaxed);
                }
            }));
        }
        let mut next_ns = monotonic_ns() + POLL_NS;
        while !working.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            std::thread::sleep(std::time::Duration::from_millis(1));
            if monotonic_ns() > next_ns {
                next_ns = monotonic_ns() + POLL_NS;
                if !progress(done.load(Ordering::Relaxed), ends.len() as u64) {
                    stop.store(true, Ordering::Relaxed);
                }
            }
        }
    });
    bytes
}
