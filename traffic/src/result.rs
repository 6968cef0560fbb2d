// SPDX-License-Identifier: Apache-2.0
//! What became of a trial's frames, from what its senders and receivers counted.

use std::collections::BTreeMap;

use crate::arrivals::Arrivals;
use crate::failure::Outcome;
use crate::lanes::Part;
use crate::losses;
use crate::preparation::arriving;
use crate::protocol::{
    EspCounts, Noise, NoiseResult, OpenedPort, PortResult, Stream, StreamResult, Tagged, Trial, TrialResult,
};
use crate::receiver::{PortCount, StreamCount, slices};
use crate::sender::SendReport;

/// What a trial's senders and receivers counted.
pub struct Counted<'a> {
    pub parts: &'a [Part],
    /// One for each part.
    pub reports: &'a [SendReport],
    /// One for each port.
    pub counts: &'a [PortCount],
    /// What the SAs of each port say.
    pub opened: &'a [Option<EspCounts>],
    pub ports: &'a [OpenedPort],
}

/// The trial as far as frames tell it; what the host did meanwhile is left out.
pub fn trial_result(
    trial: &Trial,
    counted: &Counted,
    start_ns: u64,
    stopped_early: bool,
    notes: Vec<String>,
) -> Outcome<TrialResult> {
    let mut result = TrialResult {
        id: trial.id.clone(),
        start_ns,
        last_tx_ns: counted
            .reports
            .iter()
            .map(|report| report.last_tx_ns)
            .max()
            .unwrap_or(0),
        duration_s: 0.0,
        intended_duration_s: trial.duration_s,
        streams: Vec::new(),
        noise: Vec::new(),
        ports: Vec::new(),
        host_stalls: Vec::new(),
        host_stall_ms_total: BTreeMap::new(),
        host_stalls_more: 0,
        stalls_watched: true,
        senders_run_ms: 0.0,
        senders_wait_ms: 0.0,
        receivers_run_ms: 0.0,
        receivers_wait_ms: 0.0,
        clock_step_ns: 0,
        stopped_early,
        shortfall: String::new(),
        faults: Vec::new(),
        warnings: Vec::new(),
        notes,
    };
    for (of, stream) in trial.streams.iter().enumerate() {
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
            let told = stream_result(stream, &both, arrivals, start_ns, trial, stopped_early)?;
            result.streams.push(told);
        }
    }
    for (of, noise) in trial.noise.iter().enumerate() {
        let of_it = counted.parts.iter().zip(counted.reports);
        let reports: Vec<&SendReport> = of_it
            .filter(|(part, _)| part.stream.is_none() && part.of == of)
            .map(|(_, report)| report)
            .collect();
        result
            .noise
            .push(noise_result(noise, &reports, start_ns, trial, stopped_early));
    }
    result.duration_s = result
        .streams
        .iter()
        .map(|stream| stream.duration_s)
        .fold(0.0, f64::max);
    for ((port, count), esp) in counted.ports.iter().zip(counted.counts).zip(counted.opened) {
        result.ports.push(PortResult {
            name: port.name.clone(),
            rx_overrun: count.overrun,
            foreign: count.foreign,
            rx_total: count.total,
            merged: count.merged,
            esp: esp.clone(),
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
    Ok(result)
}

/// What the CPUs that sent a stream, or noise, did together.
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
    /// `reports`: at least one.
    fn of(reports: &[&SendReport], start_ns: u64, trial: &Trial, stopped_early: bool) -> Self {
        let sum = |of: &dyn Fn(&SendReport) -> u64| reports.iter().map(|report| of(report)).sum::<u64>();
        let vanished = sum(&|report| report.vanished);
        let sent = sum(&|report| report.sent) - vanished;
        let planned = reports.iter().map(|report| report.planned).sum::<Option<u64>>();
        let unsent = planned.map_or(0, |planned| planned - sent);
        let leaving = || reports.iter().filter(|report| report.sent > 0);
        let first_tx_ns = leaving().map(|report| report.first_tx_ns).min().unwrap_or(0);
        let last_tx_ns = leaving().map(|report| report.last_tx_ns).max().unwrap_or(0);
        // The parts take turns: together they leave so much more often.
        let interval_ns = reports[0].interval_ns / reports.len() as f64;
        let took_s = last_tx_ns.saturating_sub(start_ns) as f64 / 1e9;
        let mut duration_s = if sent == 0 {
            0.0
        } else {
            took_s + interval_ns / 1e9
        };
        if unsent > 0 && !stopped_early {
            // The port held frames back until sending was ended: that time was spent sending, too.
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

fn noise_result(
    noise: &Noise,
    reports: &[&SendReport],
    start_ns: u64,
    trial: &Trial,
    stopped_early: bool,
) -> NoiseResult {
    let sending = Sending::of(reports, start_ns, trial, stopped_early);
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

/// The first frame of the whole stream that left at the time of the tag or later.
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

/// `parts`: what each CPU that sent the stream did, and what arrived of that; at least one.
fn stream_result(
    stream: &Stream,
    parts: &[(&SendReport, &StreamCount)],
    arrivals: &Arrivals,
    start_ns: u64,
    trial: &Trial,
    stopped_early: bool,
) -> Outcome<StreamResult> {
    let sum = |of: &dyn Fn(&SendReport) -> u64| parts.iter().map(|(sent, _)| of(sent)).sum::<u64>();
    let count = |of: &dyn Fn(&StreamCount) -> u64| parts.iter().map(|(_, came)| of(came)).sum::<u64>();
    let reports: Vec<&SendReport> = parts.iter().map(|(report, _)| *report).collect();
    let sending = Sending::of(&reports, start_ns, trial, stopped_early);
    let last_rx_ns = parts.iter().map(|(_, came)| came.last_rx_ns).max().unwrap_or(0);
    let lost: u64 = (parts.iter())
        .map(|(report, came)| came.sequence.lost(report.sent))
        .sum();
    let lost = lost.saturating_sub(sending.vanished);
    let mut losses = losses::of(parts);
    if sending.vanished > 0 || lost == 0 {
        losses.forget_times();
    }
    let (mut latency, mut lateness) = (crate::latency::histogram()?, crate::latency::histogram()?);
    let mut tx_stalls = Vec::new();
    for (report, came) in parts {
        // Both have the bounds of crate::latency::histogram.
        let _ = latency.add(&came.latency);
        let _ = lateness.add(&report.lateness);
        tx_stalls.extend(report.stalls.iter().cloned());
    }
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
        drain_s: if last_rx_ns == 0 {
            0.0
        } else {
            last_rx_ns.saturating_sub(sending.last_tx_ns) as f64 / 1e9
        },
        latency_us: crate::latency::latency(&latency)?,
        tagged: tagged(parts),
        slices: slices(parts.iter().map(|(_, came)| *came)),
        steps: losses.steps(stream, parts, start_ns, sending.vanished == 0),
        first_lost_ns: losses.first_ns,
        last_lost_ns: losses.last_ns,
        loss_episodes: losses.listed,
        loss_episodes_more: losses.more,
        first_rx_ns: told(arrivals.first_ns),
        last_rx_ns: told(arrivals.last_ns),
        longest_gap: arrivals.longest.filter(|_| gaps_known),
        gaps: if gaps_known {
            arrivals.listed.clone()
        } else {
            Vec::new()
        },
        gaps_more: if gaps_known { arrivals.more } else { 0 },
        late_frames: sum(&|report| report.late_frames),
        lateness_us: crate::latency::lateness(&lateness),
        tx_stalls: crate::tx_stalls::merged(tx_stalls),
        tx_stalls_more: sum(&|report| report.stalls_more),
        sealed_before: parts[0].0.sealed_before,
    })
}
