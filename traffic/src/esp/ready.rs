// SPDX-License-Identifier: Apache-2.0
//! Frames sealed before the trial, where the cipher is too slow to do it between two departures.
//!
//! Their test headers cannot bear the time of departure, so it is kept beside them, by number.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::clock::monotonic_ns;
use crate::esp::sealing::Sealer;
use crate::frame::Template;
use crate::frames::Frames;
use crate::sender::Outgoing;

/// On the fly, if it takes at most so much of the time between two frames.
const SHARE: f64 = 0.5;
/// Taken for the rate of a burst: as fast as ports mostly are.
pub const BURST_FPS: f64 = 1e6;
const POLL_NS: u64 = 50_000_000;

/// When each frame of a stream was sent, ns.
pub type Departed = Arc<[AtomicU64]>;

pub struct Ready {
    bytes: Vec<u8>,
    /// Where each frame ends in `bytes`.
    ends: Vec<usize>,
    pub departed: Departed,
}

impl Ready {
    pub fn write(&self, out: &mut [u8], index: u64, time: u64) -> usize {
        let index = index as usize;
        let from = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        let frame = &self.bytes[from..self.ends[index]];
        out[..frame.len()].copy_from_slice(frame);
        self.departed[index].store(time, Ordering::Relaxed);
        frame.len()
    }
}

/// Whether frames at that rate are too many for work of `cost_ns` on each.
pub fn too_slow(cost_ns: f64, rate_fps: f64) -> bool {
    cost_ns * rate_fps > SHARE * 1e9
}

/// Seals the frames of a stream before it starts, if it must be; `room` is lessened by the bytes that takes.
///
/// Where not all have room the rest is not sent: that is told.
pub fn make(
    stream: &mut Outgoing,
    rate_fps: f64,
    room: &mut usize,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Option<String> {
    let Frames::Sealed(template, sealing) = &mut stream.frames else {
        return None;
    };
    let cost_ns = sealing.sealer.cost_ns(template);
    if !too_slow(cost_ns, rate_fps) {
        return None;
    }
    let frames = stream.schedule.planned().unwrap_or(0);
    let mut ends = Vec::new();
    let mut total = 0;
    let entry = size_of::<usize>() + size_of::<AtomicU64>();
    for index in 0..frames {
        let end = total + sealing.sealer.frame_bytes(template.length(index));
        if end + entry * (ends.len() + 1) > *room {
            break;
        }
        total = end;
        ends.push(total);
    }
    let told = (ends.len() < frames as usize).then(|| {
        format!(
            "to seal a frame by {:?} takes {:.1} µs, too long for {rate_fps:.0} frames/s, and sealed before the trial {} of {frames} fit the memory for it ({} MiB; native: esp_memory_mib)",
            sealing.sealer.suite(),
            cost_ns / 1e3,
            ends.len(),
            *room >> 20
        )
    });
    stream.most = ends.len() as u64;
    *room -= total + entry * ends.len();
    let bytes = sealed(&sealing.sealer, template, stream.first_sequence, &ends, progress);
    sealing.ready = Some(Ready {
        departed: ends.iter().map(|_| AtomicU64::new(0)).collect(),
        bytes,
        ends,
    });
    told
}

/// All frames, sealed by as many threads as there are CPUs; cut short where `progress` says so.
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
