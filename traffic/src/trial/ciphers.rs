// SPDX-License-Identifier: Apache-2.0
//! The work of slow ciphers before and after a trial: packets are sealed before it, and kept and opened after it.

use std::sync::atomic::AtomicU64;

use crate::esp::sealed_ahead::Ready;
use crate::failure::Outcome;
use crate::frame::octets::ETHERNET;
use crate::protocol::Trial;
use crate::receive::port_count::PortCount;
use crate::send::frame_source::Frames;
use crate::send::outgoing::Outgoing;
use crate::trial::caller::Caller;
use crate::trial::parts::Part;
use crate::trial::preparation::Prepared;

/// Share of the time between two frames that a cipher may take. A slower cipher works before or after the trial.
const SHARE: f64 = 0.5;
/// Rate that a cipher must reach for a burst: most ports are not faster.
const BURST_FPS: f64 = 1e6;

/// Seals frames, and reserves memory for packets that are opened later, if a cipher is too slow for the rate. Returns
/// the reasons why not all frames can be sent.
pub fn prepare(trial: &Trial, prepared: &mut Prepared, caller: &mut Caller) -> Outcome<Vec<String>> {
    let mut room = trial.memory_mib << 20;
    let mut shortfalls = caller.while_packets(&trial.id, "sealed", |progress| {
        seal_ahead(prepared, &mut room, progress)
    })?;
    follow_departures(prepared);
    let Prepared {
        parts,
        counts,
        outgoing,
        ..
    } = prepared;
    for count in counts {
        shortfalls.extend(make_room(parts, count, outgoing, &mut room));
    }
    Ok(shortfalls)
}

/// Opens the packets that a port has kept. Fails if the caller asked to stop.
pub fn open_kept(trial: &Trial, count: &mut PortCount, caller: &mut Caller) -> Outcome<()> {
    caller.while_packets(&trial.id, "opened", |progress| count.open_kept(progress))
}

/// Returns the rate that a cipher must reach, frames/s. It is 0 for a flood, whose rate is the fastest at which frames
/// can be sealed and opened during the trial.
fn rate_of(part: &Part) -> f64 {
    match (part.schedule.is_paced(), part.schedule.planned()) {
        (true, _) => 1e9 / part.schedule.least_interval_ns(),
        (false, Some(_)) => BURST_FPS,
        (false, None) => 0.0,
    }
}

/// Seals the frames of streams whose cipher is too slow. Returns the reasons why not all frames can be sent.
fn seal_ahead(
    prepared: &mut Prepared,
    room: &mut usize,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Vec<String> {
    let mut shortfalls = Vec::new();
    for (part, stream) in prepared.parts.iter().zip(&mut prepared.outgoing) {
        if let Some(stream) = stream {
            shortfalls.extend(make_ready(stream, rate_of(part), room, progress));
        }
    }
    shortfalls
}

/// Returns whether a cipher that takes `cost_ns` for each frame is too slow for a rate.
fn too_slow(cost_ns: f64, rate_fps: f64) -> bool {
    cost_ns * rate_fps > SHARE * 1e9
}

/// Seals the frames of a stream before it starts, if its cipher is too slow, and subtracts the memory for them from
/// `room`, bytes.
///
/// If the memory is too small for all frames, the rest is not sent, and the reason is returned.
pub fn make_ready(
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
    let first_sequence = stream.first_sequence;
    sealing.ready = Some(Ready::seal(
        &sealing.sealer,
        template,
        first_sequence,
        ends,
        progress,
    ));
    told
}

/// Gives the counts of streams that were sealed before the trial the times of departure of their frames.
fn follow_departures(prepared: &mut Prepared) {
    let to = |part: &Part| part.stream.as_ref().map(|stream| stream.to.clone());
    let names: Vec<Option<String>> = prepared.parts.iter().map(to).collect();
    for (position, stream) in prepared.outgoing.iter().enumerate() {
        let departed = stream.as_ref().and_then(|stream| match &stream.frames {
            Frames::Sealed(_, sealing) => Some(sealing.ready.as_ref()?.departed.clone()),
            _ => None,
        });
        // A port's counts are in the order of the parts that arrive there.
        let place = names[..position]
            .iter()
            .filter(|name| **name == names[position])
            .count();
        let count = count_of(&mut prepared.counts, &prepared.parts[position]);
        if let (Some(departed), Some(count)) = (departed, count) {
            count.streams[place].departed = Some(departed);
        }
    }
}

/// Reserves memory for the packets that a port keeps, if its cipher is too slow, and subtracts it from `room`, bytes.
/// Returns the reason why not all frames can be sent.
fn make_room(
    parts: &[Part],
    count: &mut PortCount,
    outgoing: &mut [Option<Outgoing>],
    room: &mut usize,
) -> Option<String> {
    let opening = count.opening.as_mut()?;
    let ids: Vec<u16> = count.expected.iter().map(|expected| expected.stream()).collect();
    let arrives = |part: &Part| {
        part.stream
            .as_ref()
            .is_some_and(|stream| ids.contains(&stream.id))
    };
    let arriving: Vec<usize> = (0..parts.len()).filter(|&p| arrives(&parts[p])).collect();
    let longest = count.expected.iter().map(|e| e.longest()).max().unwrap_or(0) - ETHERNET;
    let rate: f64 = arriving.iter().map(|&part| rate_of(&parts[part])).sum();
    let cost_ns = opening.cost_ns(longest);
    if !too_slow(cost_ns, rate) {
        return None;
    }
    let most: u64 = count.expected.iter().map(|expected| expected.sequences()).sum();
    let needed = opening.kept_bytes(longest) * most as usize;
    let mut told = None;
    if needed > *room {
        let share = (*room / opening.kept_bytes(longest) / arriving.len()) as u64;
        for &part in &arriving {
            if let Some(stream) = &mut outgoing[part] {
                stream.most = stream.most.min(share);
            }
        }
        told = Some(format!(
            "to open a packet takes {:.1} µs, too long for {rate:.0} frames/s, and kept for after the trial {share} of {most} fit the memory for it ({} MiB; native: esp_memory_mib)",
            cost_ns / 1e3,
            *room >> 20
        ));
    }
    opening.keep(needed.min(*room));
    *room -= needed.min(*room);
    told
}

fn count_of<'a>(counts: &'a mut [PortCount], part: &Part) -> Option<&'a mut PortCount> {
    let id = part.stream.as_ref()?.id;
    counts
        .iter_mut()
        .find(|count| count.expected.iter().any(|expected| expected.stream() == id))
}
