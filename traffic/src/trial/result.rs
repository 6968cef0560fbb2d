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
        let mut several_queues = None;
        for (port, count) in counted.ports.iter().zip(counted.counts) {
            for (place, position) in arriving(counted.parts, &port.name).enumerate() {
                if counted.parts[position].of == of {
                    both.push((&counted.reports[position], &count.streams[place]));
                    arrivals = Some(&count.arrivals[count.lead[place]]);
                    several_queues = (count.queues > 1).then_some((&port.name, count.queues));
                }
            }
        }
        if let Some(arrivals) = arrivals {
            let mut counts = stream_result(stream, &both, arrivals, made)?;
            if let Some((port, queues)) = several_queues.filter(|_| has_flows(stream)) {
                // The queues of a card are read side by side, so flows overtake each other in the tester itself.
                counts.reordered = None;
                let unknown = format!("reordered frames at port {port}, which receives by {queues} queues");
                result.not_measured.push(unknown);
            }
            if let Some(unknown) = early(stream, &both) {
                counts.latency_us = None;
                result.not_measured.push(unknown);
            }
            result.streams.push(counts);
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
        not_measured: Vec::new(),
    }
}

/// Returns whether a stream has several flows, which a card may distribute over its queues.
fn has_flows(stream: &Stream) -> bool {
    stream.networks > 1 || stream.tunnels > 1 || stream.ports > 1 || stream.headers.len() > 1
}

/// Adds the arrivals at the ports and their faults, and a warning if frames were merged.
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
        let faults = count.faults.iter();
        result
            .faults
            .extend(faults.map(|fault| format!("port {}: {fault}", port.name)));
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

/// Returns what is not known of a stream's latency because frames arrived before they left; None if none did.
fn early(stream: &Stream, parts: &[(&SendReport, &StreamCount)]) -> Option<String> {
    let frames: u64 = parts.iter().map(|(_, came)| came.early).sum();
    (frames > 0).then(|| {
        format!(
            "latency from {} to {}: {frames} frames arrived before they left, so the clocks of sender and receiver differ",
            stream.from, stream.to
        )
    })
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
        reordered: Some(count(&|came| came.sequence.reordered)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::test_header::RunKey;
    use crate::protocol::OpenPort;
    use crate::protocol::sample::stream;
    use crate::trial::numbering::Numbering;
    use crate::trial::preparation::{self, Prepared};

    /// Makes the result of a trial without frames, of a stream to port east.
    fn result_of(networks: u16, queues: u32, faults: &[&str]) -> TrialResult {
        result_of_arrivals(networks, queues, faults, &[])
    }

    /// Does the same, with frames that left at 500 ns and arrived at these times.
    fn result_of_arrivals(networks: u16, queues: u32, faults: &[&str], at_ns: &[u64]) -> TrialResult {
        let mut sent = stream(4, &[64]);
        sent.rate_fps = Some(1000.0);
        sent.networks = networks;
        let trial: Trial = serde_json::from_value(serde_json::json!({
            "id": "t", "duration_s": 1.0, "streams": []
        }))
        .unwrap();
        let trial = Trial {
            streams: vec![sent],
            ..trial
        };
        let (mut asked, mut told): (Vec<OpenPort>, Vec<OpenedPort>) = (Vec::new(), Vec::new());
        for name in ["west", "east"] {
            asked.push(serde_json::from_value(serde_json::json!({"name": name, "interface": "x"})).unwrap());
            told.push(OpenedPort {
                name: name.into(),
                interface: "x".into(),
                driver: "ixgbe".into(),
                mac: String::new(),
                mtu: 1500,
                carrier: true,
                speed_mbps: None,
                sender: String::new(),
                receiver: String::new(),
                notes: Vec::new(),
            });
        }
        let ports: Vec<(&OpenPort, bool)> = asked.iter().map(|port| (port, false)).collect();
        let key = RunKey::new(1, 2);
        let Prepared {
            parts, mut counts, ..
        } = preparation::prepare(&trial, &ports, key, &Numbering::default()).unwrap();
        counts[1].queues = queues;
        for (number, &at_ns) in at_ns.iter().enumerate() {
            counts[1].streams[0].intact(number as u64, 500, at_ns);
        }
        counts[1].faults = faults.iter().map(ToString::to_string).collect();
        let counted = Counted {
            parts: &parts,
            reports: &[SendReport::new(&parts[0].schedule).unwrap()],
            counts: &counts,
            opened: &[None, None],
            ports: &told,
        };
        let made = Made {
            trial: &trial,
            start_ns: 0,
            stopped_early: false,
        };
        trial_result(&made, &counted, Vec::new()).unwrap()
    }

    /// Several queues of a port are read side by side, so the order of several flows is not known.
    #[test]
    fn the_order_of_flows_over_several_queues_is_not_known() {
        for (networks, queues) in [(1, 1), (1, 4), (2, 1), (2, 0)] {
            let result = result_of(networks, queues, &[]);
            assert_eq!(
                result.streams[0].reordered,
                Some(0),
                "{networks} flows, {queues} queues"
            );
            assert!(result.not_measured.is_empty());
        }
        let result = result_of(2, 4, &[]);
        assert_eq!(result.streams[0].reordered, None);
        assert_eq!(
            result.not_measured,
            ["reordered frames at port east, which receives by 4 queues"]
        );
    }

    /// One frame that arrived before it left shows that no latency of its stream is right.
    #[test]
    fn clocks_that_differ_give_no_latency() {
        let result = result_of_arrivals(1, 1, &[], &[600, 700]);
        assert!(result.streams[0].latency_us.is_some() && result.not_measured.is_empty());
        let result = result_of_arrivals(1, 1, &[], &[600, 499]);
        assert!(result.streams[0].latency_us.is_none());
        assert!(result.not_measured[0].starts_with("latency from west to east: 1 frames arrived before"));
        assert_eq!(result.streams[0].rx_frames, 2);
    }

    /// Counts that contradict each other are a fault of the trial.
    #[test]
    fn a_fault_of_a_receiver_is_one_of_the_trial() {
        assert_eq!(result_of(1, 1, &["no sum"]).faults, ["port east: no sum"]);
    }
}
