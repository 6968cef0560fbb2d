// SPDX-License-Identifier: Apache-2.0
//! What became of a trial's frames, from what its senders and receivers counted.

use std::collections::BTreeMap;

use crate::failure::Outcome;
use crate::lanes::Part;
use crate::preparation::arriving;
use crate::protocol::{
    EspCounts, LossEpisode, OpenedPort, PortResult, Stream, StreamResult, Trial, TrialResult,
};
use crate::receiver::{PortCount, StreamCount, slices};
use crate::sender::SendReport;

const EPISODES: usize = 1000;

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
        ports: Vec::new(),
        host_stalls: Vec::new(),
        host_stall_ms_total: BTreeMap::new(),
        host_stalls_more: 0,
        senders_run_ms: 0.0,
        senders_wait_ms: 0.0,
        receivers_run_ms: 0.0,
        receivers_wait_ms: 0.0,
        clock_step_ns: 0,
        stopped_early,
        notes,
    };
    for (of, stream) in trial.streams.iter().enumerate() {
        let mut both = Vec::new();
        for (port, count) in counted.ports.iter().zip(counted.counts) {
            for (place, position) in arriving(counted.parts, &port.name).enumerate() {
                if counted.parts[position].of == of {
                    both.push((&counted.reports[position], &count.streams[place]));
                }
            }
        }
        if !both.is_empty() {
            let told = stream_result(stream, &both, start_ns, trial, stopped_early)?;
            result.streams.push(told);
        }
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
            result.notes.push(format!(
                "{} frames longer than any sent arrived at {}: its receive offload merges frames (ethtool -K {} gro off)",
                count.merged, port.name, port.interface
            ));
        }
    }
    Ok(result)
}

/// `parts`: what each CPU that sent the stream did, and what arrived of that; at least one.
fn stream_result(
    stream: &Stream,
    parts: &[(&SendReport, &StreamCount)],
    start_ns: u64,
    trial: &Trial,
    stopped_early: bool,
) -> Outcome<StreamResult> {
    let sum = |of: &dyn Fn(&SendReport) -> u64| parts.iter().map(|(sent, _)| of(sent)).sum::<u64>();
    let count = |of: &dyn Fn(&StreamCount) -> u64| parts.iter().map(|(_, came)| of(came)).sum::<u64>();
    let vanished = sum(&|report| report.vanished);
    let sent = sum(&|report| report.sent) - vanished;
    let planned = parts
        .iter()
        .map(|(report, _)| report.planned)
        .sum::<Option<u64>>();
    let unsent = planned.map_or(0, |planned| planned - sent);
    let last_tx_ns = parts
        .iter()
        .map(|(report, _)| report.last_tx_ns)
        .max()
        .unwrap_or(0);
    let last_rx_ns = parts.iter().map(|(_, came)| came.last_rx_ns).max().unwrap_or(0);
    // The parts take turns: together they leave so much more often.
    let interval_ns = parts[0].0.interval_ns / parts.len() as f64;
    let took_s = last_tx_ns.saturating_sub(start_ns) as f64 / 1e9;
    let mut duration_s = if sent == 0 {
        0.0
    } else {
        took_s + interval_ns / 1e9
    };
    if unsent > 0 && !stopped_early {
        // The port held frames back until the deadline: that time was spent sending, too.
        duration_s = duration_s.max(trial.duration_s);
    }
    let mut loss_episodes = Vec::new();
    let (mut latency, mut lateness) = (crate::latency::histogram()?, crate::latency::histogram()?);
    let mut tx_stalls = Vec::new();
    for (report, came) in parts {
        came.sequence.missing_runs(report.sent, |run| {
            loss_episodes.push(LossEpisode {
                from_ns: report.sent_at(run.first),
                to_ns: report.sent_at(run.last),
                frames: run.last - run.first + 1,
            });
        });
        // Both have the bounds of crate::latency::histogram.
        let _ = latency.add(&came.latency);
        let _ = lateness.add(&report.lateness);
        tx_stalls.extend(report.stalls.iter().cloned());
    }
    loss_episodes.sort_by_key(|episode| episode.from_ns);
    tx_stalls.sort_by_key(|stall| stall.at_ns);
    let loss_episodes_more = loss_episodes.len().saturating_sub(EPISODES) as u64;
    loss_episodes.truncate(EPISODES);
    Ok(StreamResult {
        id: stream.id,
        from: stream.from.clone(),
        to: stream.to.clone(),
        intended_frames: planned,
        tx_frames: sent,
        tx_refused: sum(&|report| report.refused),
        unsent,
        tx_retries: sum(&|report| report.retries),
        duration_s,
        rx_frames: count(&|came| came.sequence.received),
        lost: parts
            .iter()
            .map(|(report, came)| came.sequence.lost(report.sent))
            .sum::<u64>()
            .saturating_sub(vanished),
        duplicated: count(&|came| came.sequence.duplicated),
        reordered: count(&|came| came.sequence.reordered),
        corrupted: count(&|came| came.sequence.corrupted),
        rx_after_stop: count(&|came| came.after_stop),
        drain_s: if last_rx_ns == 0 {
            0.0
        } else {
            last_rx_ns.saturating_sub(last_tx_ns) as f64 / 1e9
        },
        latency_us: crate::latency::latency(&latency)?,
        slices: slices(parts.iter().map(|(_, came)| *came)),
        loss_episodes,
        loss_episodes_more,
        late_frames: sum(&|report| report.late_frames),
        lateness_us: crate::latency::lateness(&lateness),
        tx_stalls,
        tx_stalls_more: sum(&|report| report.stalls_more),
        sealed_before: parts[0].0.sealed_before,
    })
}
