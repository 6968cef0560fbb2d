// SPDX-License-Identifier: Apache-2.0
//! The result of a trial, computed from the counts of its senders and receivers.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::count::arrivals::Arrivals;
use crate::count::{histogram, tx_stalls};
use crate::failure::Outcome;
use crate::protocol::{
    EspCounts, Noise, NoiseResult, OpenedPort, PortResult, Stream, StreamResult, Tagged, Trial, TrialResult,
};
use crate::receive::port_count::PortCount;
use crate::receive::stream_count::{StreamCount, slices};
use crate::send::report::SendReport;
use crate::trial::losses::{self, Losses};
use crate::trial::parts::{Part, arriving};

/// The counts of a trial's senders and receivers.
pub struct Counted<'a> {
    pub parts: &'a [Part],
    /// One for each part.
    pub reports: &'a [SendReport],
    /// One for each port.
    pub counts: &'a [PortCount],
    /// The counts of the SAs of each port.
    pub opened: &'a [Option<EspCounts>],
    pub ports: &'a [OpenedPort],
}

/// The trial that was made: the request, the time of the start, and whether it was stopped.
pub struct Made<'a> {
    pub trial: &'a Trial,
    pub start_ns: u64,
    pub stopped_early: bool,
}

/// Makes the result of a trial from the counts of its frames. The caller adds the disturbances by the host.
pub fn trial_result(made: &Made, counted: &Counted, notes: Vec<String>) -> Outcome<TrialResult> {
    let mut result = empty(made, counted.reports);
    result.notes = notes;
    for (of, stream) in made.trial.streams.iter().enumerate() {
        let mut both = Vec::new();
        let mut arrivals = None;
        for (port, count) in counted.ports.iter().zip(counted.counts) {
            for (place, position) in arriving(counted.parts, &port.name).enumerate() {
                if counted.parts[position].of == of {
                    both.push((&counted.reports[position], &count.streams[place]));
                    arrivals = Some(&count.arrivals[count.lead[place]]);
                }
            }
        }
        if let Some(arrivals) = arrivals {
            result.streams.push(stream_result(stream, &both, arrivals, made)?);
        }
    }
    for (of, noise) in made.trial.noise.iter().enumerate() {
        let of_it = counted.parts.iter().zip(counted.reports);
        let reports: Vec<&SendReport> = of_it
            .filter(|(part, _)| part.stream.is_none() && part.of == of)
            .map(|(_, report)| report)
            .collect();
        result.noise.push(noise_result(noise, &reports, made));
    }
    let durations = result.streams.iter().map(|stream| stream.duration_s);
    result.duration_s = durations.fold(0.0, f64::max);
    add_ports(&mut result, counted);
    Ok(result)
}

/// Makes a result without streams, noise and ports.
fn empty(made: &Made, reports: &[SendReport]) -> TrialResult {
    TrialResult {
        id: made.trial.id.clone(),
        start_ns: made.start_ns,
        last_tx_ns: reports.iter().map(|report| report.last_tx_ns).max().unwrap_or(0),
        duration_s: 0.0,
        intended_duration_s: made.trial.duration_s,
        streams: Vec::new(),
        noise: Vec::new(),
        ports: Vec::new(),
        between: Vec::new(),
        host_stalls: Vec::new(),
        host_stall_ms_total: BTreeMap::new(),
        host_stalls_more: 0,
        host_stalls_more_ms: 0.0,
        stalls_watched: true,
        cpu_speed: BTreeMap::new(),
        senders_run_ms: 0.0,
        senders_wait_ms: 0.0,
        receivers_run_ms: 0.0,
        receivers_wait_ms: 0.0,
        clock_step_ns: 0,
        stopped_early: made.stopped_early,
        shortfall: String::new(),
        faults: Vec::new(),
        warnings: Vec::new(),
        notes: Vec::new(),
    }
}

/// Adds the arrivals at the ports, and a warning if frames were merged.
fn add_ports(result: &mut TrialResult, counted: &Counted) {
    for ((port, count), esp) in counted.ports.iter().zip(counted.counts).zip(counted.opened) {
        result.ports.push(PortResult {
            name: port.name.clone(),
            rx_overrun: count.overrun,
            foreign: count.foreign,
            rx_total: count.total,
            merged: count.merged,
            esp: esp.clone(),
            link: None,
        });
        if count.merged > 0 {
            result.warnings.push(format!(
                "the receive offload of {} merges frames, which then count as damaged (ethtool -K {} gro off)",
                port.interface, port.interface
            ));
            result.notes.push(format!(
                "{} frames longer than any sent arrived at {}: its receive offload merges frames (ethtool -K {} gro off)",
                count.merged, port.name, port.interface
            ));
        }
    }
}

/// The sending of a stream or noise by all its CPUs together.
struct Sending {
    planned: Option<u64>,
    sent: u64,
    vanished: u64,
    refused: u64,
    unsent: u64,
    last_tx_ns: u64,
    duration_s: f64,
    departure_fps: Option<f64>,
}

impl Sending {
    /// Adds up the reports of all CPUs, of which there is at least one.
    fn of(reports: &[&SendReport], made: &Made) -> Self {
        let (start_ns, trial) = (made.start_ns, made.trial);
        let sum = |of: &dyn Fn(&SendReport) -> u64| reports.iter().map(|report| of(report)).sum::<u64>();
        let vanished = sum(&|report| report.vanished);
        let sent = sum(&|report| report.sent) - vanished;
        let planned = reports.iter().map(|report| report.planned).sum::<Option<u64>>();
        let unsent = planned.map_or(0, |planned| planned - sent);
        let leaving = || reports.iter().filter(|report| report.sent > 0);
        let first_tx_ns = leaving().map(|report| report.first_tx_ns).min().unwrap_or(0);
        let last_tx_ns = leaving().map(|report| report.last_tx_ns).max().unwrap_or(0);
        // The parts take turns, so the interval of the whole stream is shorter by their number.
        let interval_ns = reports[0].interval_ns / reports.len() as f64;
        let took_s = last_tx_ns.saturating_sub(start_ns) as f64 / 1e9;
        let mut duration_s = if sent == 0 {
            0.0
        } else {
            took_s + interval_ns / 1e9
        };
        if unsent > 0 && !made.stopped_early {
            // The port held frames back until sending was ended. This time counts as time spent sending, too.
            let cut_ns = reports.iter().filter_map(|report| report.cut_ns).max();
            let cut_s = cut_ns.map_or(0.0, |cut_ns| cut_ns.saturating_sub(start_ns) as f64 / 1e9);
            duration_s = duration_s.max(trial.duration_s).max(cut_s);
        }
        let between_ns = last_tx_ns.saturating_sub(first_tx_ns);
        Sending {
            planned,
            sent,
            vanished,
            refused: sum(&|report| report.refused),
            unsent,
            last_tx_ns,
            duration_s,
            departure_fps: (sent > 1 && between_ns > 0).then(|| (sent - 1) as f64 * 1e9 / between_ns as f64),
        }
    }
}

fn noise_result(noise: &Noise, reports: &[&SendReport], made: &Made) -> NoiseResult {
    let sending = Sending::of(reports, made);
    NoiseResult {
        id: noise.id,
        from: noise.from.clone(),
        intended_frames: sending.planned,
        tx_frames: sending.sent,
        tx_refused: sending.refused,
        unsent: sending.unsent,
        duration_s: sending.duration_s,
        departure_fps: sending.departure_fps,
    }
}

/// Returns the first frame of the whole stream that left at the time of the tag or later.
fn tagged(parts: &[(&SendReport, &StreamCount)]) -> Option<Tagged> {
    let of_part = parts.iter().filter_map(|(report, came)| {
        let (index, at_ns) = report.tagged?;
        let came = came.tagged.filter(|&(number, _)| number == index);
        Some(Tagged {
            at_ns,
            latency_us: came.map(|(_, latency_ns)| latency_ns as f64 / 1e3),
        })
    });
    of_part.min_by_key(|tagged| tagged.at_ns)
}

/// Adds up one histogram of each part of a stream.
fn merged<'a>(
    parts: &'a [(&'a SendReport, &'a StreamCount)],
    which: impl Fn(&(&'a SendReport, &'a StreamCount)) -> &'a Histogram<u64>,
) -> Outcome<Histogram<u64>> {
    let mut sum = histogram::histogram()?;
    for part in parts {
        let _ = sum.add(which(part)); // all have the same bounds
    }
    Ok(sum)
}

/// Returns the number of lost frames of a stream, and their times. `vanished`: number of its frames that never left.
fn lost(parts: &[(&SendReport, &StreamCount)], vanished: u64) -> (u64, Losses) {
    let lost: u64 = (parts.iter())
        .map(|(report, came)| came.sequence.lost(report.sent))
        .sum();
    let lost = lost.saturating_sub(vanished);
    let mut losses = losses::of(parts);
    if vanished > 0 {
        losses.forget();
    }
    (lost, losses)
}

/// Makes the result of a stream. `parts` has at least one pair: the report of a CPU that sent the stream, and the count
/// of what arrived of it.
fn stream_result(
    stream: &Stream,
    parts: &[(&SendReport, &StreamCount)],
    arrivals: &Arrivals,
    made: &Made,
) -> Outcome<StreamResult> {
    let sum = |of: &dyn Fn(&SendReport) -> u64| parts.iter().map(|(sent, _)| of(sent)).sum::<u64>();
    let count = |of: &dyn Fn(&StreamCount) -> u64| parts.iter().map(|(_, came)| of(came)).sum::<u64>();
    let reports: Vec<&SendReport> = parts.iter().map(|(report, _)| *report).collect();
    let sending = Sending::of(&reports, made);
    let (lost, losses) = lost(parts, sending.vanished);
    let latency = merged(parts, |(_, came)| &came.latency)?;
    let lateness = merged(parts, |(report, _)| &report.lateness)?;
    let stalls = parts.iter().flat_map(|(report, _)| report.stalls.clone());
    let last_rx_ns = parts.iter().map(|(_, came)| came.last_rx_ns).max().unwrap_or(0);
    let gaps_known = !arrivals.torn;
    let told = |ns: u64| (ns != 0).then_some(ns);
    Ok(StreamResult {
        id: stream.id,
        from: stream.from.clone(),
        to: stream.to.clone(),
        intended_frames: sending.planned,
        tx_frames: sending.sent,
        tx_refused: sending.refused,
        unsent: sending.unsent,
        tx_retries: sum(&|report| report.retries),
        duration_s: sending.duration_s,
        departure_fps: sending.departure_fps,
        rx_frames: count(&|came| came.sequence.received),
        lost,
        duplicated: count(&|came| came.sequence.duplicated),
        reordered: count(&|came| came.sequence.reordered),
        corrupted: count(&|came| came.sequence.corrupted),
        rx_after_stop: count(&|came| came.after_stop),
        drain_s: last_rx_ns.saturating_sub(sending.last_tx_ns) as f64 / 1e9,
        latency_us: histogram::latency(&latency)?,
        tagged: tagged(parts),
        slices: slices(parts.iter().map(|(_, came)| *came)),
        steps: losses.steps(stream, parts, made.start_ns, sending.vanished == 0),
        first_lost_ns: losses.first_ns,
        last_lost_ns: losses.last_ns,
        loss_episodes: losses.listed,
        loss_episodes_more: losses.more,
        first_rx_ns: told(arrivals.first_ns),
        last_rx_ns: told(arrivals.last_ns),
        longest_gap: arrivals.longest.filter(|_| gaps_known),
        gaps: arrivals.listed.iter().copied().filter(|_| gaps_known).collect(),
        gaps_more: if gaps_known { arrivals.more } else { 0 },
        late_frames: sum(&|report| report.late_frames),
        lateness_us: histogram::lateness(&lateness),
        tx_stalls: tx_stalls::merged(stalls.collect()),
        tx_stalls_more: sum(&|report| report.stalls_more),
        tx_stalls_more_ms: sum(&|report| report.stalls_more_ns) as f64 / 1e6,
        sealed_before: parts[0].0.sealed_before,
    })
}
