// SPDX-License-Identifier: Apache-2.0
//! One trial: send, wait for the residue, count, report.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::clock::{StepWatch, monotonic_ns};
use crate::departures::Departures;
use crate::failure::{Failure, Outcome};
use crate::frame::{RunKey, Template};
use crate::lanes::{self, Part, Way};
use crate::pace::Schedule;
use crate::port::{Port, Rx, Tx};
use crate::protocol::{self, Event, OpenPort, PortResult, TrialResult};
use crate::receiver::{PortCount, SLICES, StreamCount};
use crate::sender::{self, Live, Outgoing, SendReport};
use crate::verify::Expected;
use crate::watch::{PROGRESS_NS, Watch};
use crate::xdp::sender::LiveSender;
use crate::{request, result, stalls};

/// Time for all threads to be up before the first frame is due.
const LEAD_NS: u64 = 30_000_000;
/// Frames that are late at the deadline may still leave for 0.1 % of the duration, at most 1 ms.
const GRACE_NS: f64 = 1_000_000.0;
/// Frames per second that a flood has sequence numbers for.
const FLOOD_FPS: f64 = 20e6;
/// No port is faster.
pub const FASTEST_FPS: f64 = 50e6;

/// What a trial needs of the session.
pub struct Bench<'a> {
    pub ports: &'a mut [Port],
    pub key: RunKey,
    pub watch_cpus: &'a [usize],
    /// Sending programs of trials before.
    pub idle: &'a mut Vec<LiveSender>,
    /// Sequence numbers go on from trial to trial: a late frame of an earlier one is foreign.
    pub next_sequence: &'a mut u64,
}

/// The parts of the trial that arrive at a port.
fn arriving<'a>(parts: &'a [Part], port: &'a str) -> impl Iterator<Item = usize> + 'a {
    (0..parts.len()).filter(move |&position| parts[position].stream.to == port)
}

/// Runs the trial from the calling thread. `emit` takes progress; `asked_to_stop` is polled.
pub fn run(
    bench: Bench,
    trial: &protocol::Trial,
    emit: &mut dyn FnMut(&Event),
    asked_to_stop: &mut dyn FnMut() -> bool,
) -> Outcome<TrialResult> {
    request::check(trial, bench.ports)?;
    let duration_ns = (trial.duration_s * 1e9) as u64;
    let first_sequence = *bench.next_sequence;
    let names: Vec<String> = bench.ports.iter().map(|port| port.told.name.clone()).collect();
    let asked: Vec<(&OpenPort, bool)> = bench
        .ports
        .iter()
        .map(|port| (&port.asked, matches!(port.tx, Tx::Live(_))))
        .collect();
    let parts = lanes::parts(trial, &asked);
    let mut templates = Vec::new();
    for part in &parts {
        templates.push(Template::new(&part.stream, bench.key)?);
    }
    let lives: Vec<Arc<Live>> = parts.iter().map(|_| Arc::default()).collect();

    let mut counts = Vec::new();
    for port in bench.ports.iter() {
        let mut count = PortCount {
            expected: Vec::new(),
            streams: Vec::new(),
            total: 0,
            foreign: 0,
            merged: 0,
            overrun: 0,
        };
        for position in arriving(&parts, &port.told.name) {
            let stream = &parts[position].stream;
            let most = stream.burst_frames.unwrap_or_else(|| {
                (stream.rate_fps.unwrap_or(FLOOD_FPS) * trial.duration_s).ceil() as u64 + 1
            });
            count.expected.push(Expected::new(
                stream,
                &templates[position],
                bench.key,
                first_sequence,
                most,
            ));
            count
                .streams
                .push(StreamCount::new(0, duration_ns, lives[position].clone())?);
        }
        counts.push(count);
    }
    let mut outgoing = Vec::new();
    for ((part, template), live) in parts.iter().zip(templates).zip(&lives) {
        let stream = &trial.streams[part.of];
        let schedule = match (part.stream.burst_frames, stream.rate_fps) {
            (Some(frames), _) => Schedule::burst(0, frames),
            (None, Some(rate)) => Schedule::at_rate(0, rate, trial.duration_s).every(part.number, part.parts),
            (None, None) => Schedule::flood(0),
        };
        outgoing.push(Some(Outgoing::new(
            template,
            schedule,
            first_sequence,
            live.clone(),
            0,
        )?));
    }
    for (port, count) in bench.ports.iter_mut().zip(&counts) {
        match &mut port.rx {
            Rx::Packets(receiver) => receiver.begin()?,
            Rx::Kernel(receiver) => receiver.begin(count, bench.key, &port.netns)?,
        }
    }
    let departures: Vec<Option<Departures>> = bench.ports.iter().map(Departures::begin).collect();
    let (mut senders, mut receivers) = (Vec::new(), Vec::new());
    for port in bench.ports.iter_mut() {
        senders.push((&port.asked, port.index as u32, &port.netns, &mut port.tx));
        receivers.push((port.asked.rx_cpu, &mut port.rx));
    }
    let mut lanes = lanes::lanes(senders, &parts, &mut outgoing);
    let mut live_senders = Vec::new();
    for lane in &lanes {
        live_senders.push(match &lane.way {
            Way::Packets(_) => None,
            Way::Live(ports) => {
                let mut sender = LiveSender::get(bench.idle, &lane.streams)?;
                sender.prepare(&lane.streams, ports, bench.key, trial.duration_s)?;
                Some(sender)
            }
        });
    }

    let mut steps = StepWatch::start();
    let start_ns = monotonic_ns() + LEAD_NS;
    let grace_ns = (duration_ns as f64 * 0.001).min(GRACE_NS) as u64;
    let deadline_ns = start_ns + duration_ns + grace_ns;
    for (lane, sender) in lanes.iter_mut().zip(&live_senders) {
        for (stream, &position) in lane.streams.iter_mut().zip(&lane.positions) {
            let part = &parts[position];
            let turn_ns = stream.schedule.interval_ns() * part.number as f64 / part.parts as f64;
            stream.schedule.begin_at(start_ns + turn_ns as u64);
        }
        if let Some(sender) = sender {
            sender.set_times(&lane.streams, start_ns, deadline_ns);
        }
    }
    for ((_, rx), (port_name, count)) in receivers.iter_mut().zip(names.iter().zip(&mut counts)) {
        for stream in &mut count.streams {
            stream.begin_at(start_ns);
        }
        if let Rx::Kernel(receiver) = rx {
            let durations: Vec<u64> = arriving(&parts, port_name)
                .map(|position| {
                    if parts[position].stream.burst_frames.is_some() {
                        0
                    } else {
                        duration_ns
                    }
                })
                .collect();
            receiver.set_times(start_ns, (duration_ns / SLICES as u64).max(1), &durations);
        }
    }

    let stop_sending = AtomicBool::new(false);
    let stop_receiving = AtomicBool::new(false);
    let mut stopped_early = false;
    let mut notes = Vec::new();
    let (mut reports, stalls) = std::thread::scope(|scope| -> Outcome<_> {
        let watchers: Vec<_> = bench
            .watch_cpus
            .iter()
            .map(|&cpu| {
                scope.spawn({
                    let stop = &stop_receiving;
                    move || stalls::watch(cpu, stop)
                })
            })
            .collect();
        let mut receiving = Vec::new();
        for (count, (cpu, rx)) in counts.iter_mut().zip(receivers) {
            let stop = &stop_receiving;
            receiving.push(scope.spawn(move || match rx {
                Rx::Packets(receiver) => count.run(cpu, receiver.as_mut(), stop),
                Rx::Kernel(receiver) => receiver.run(cpu, count, stop),
            }));
        }
        let mut sending = Vec::new();
        let mut attended = Vec::new();
        for (lane, live) in lanes.into_iter().zip(&live_senders) {
            let stop = &stop_sending;
            if let (Some(live), Way::Live(ports)) = (live, &lane.way) {
                let told = lane.streams.iter().map(|stream| stream.live.clone());
                attended.push((
                    live,
                    told.zip(ports.iter().map(|port| port.link)).collect::<Vec<_>>(),
                ));
            }
            sending.push(scope.spawn(move || {
                let sent = match (lane.way, live) {
                    (Way::Packets(mut ports), _) => {
                        sender::run(lane.cpu, lane.streams, &mut ports, start_ns, deadline_ns, stop)
                    }
                    (Way::Live(_), live) => live
                        .as_ref()
                        .ok_or_else(|| Failure::new("a lane without its sender", "report this"))
                        .and_then(|live| Ok((live.run(lane.cpu)?, live)))
                        .map(|(notes, live)| (live.reports(lane.streams), notes)),
                };
                (lane.positions, sent)
            }));
        }
        let mut watch = Watch {
            trial,
            lives: &lives,
            steps: &mut steps,
            start_ns,
            next_progress_ns: start_ns + PROGRESS_NS,
            emit,
        };
        let mut failure = None;
        while !sending.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            if !stopped_early && asked_to_stop() {
                stopped_early = true;
                stop_sending.store(true, Ordering::Relaxed);
            }
            if receiving.iter().any(std::thread::ScopedJoinHandle::is_finished) {
                stop_sending.store(true, Ordering::Relaxed); // a port failed; its thread says how
            }
            for (live, told) in &attended {
                if let Err(down) = live.attend(told, &stop_sending) {
                    failure = Some(down);
                }
            }
            watch.pause();
        }
        let mut reports: Vec<Option<SendReport>> = parts.iter().map(|_| None).collect();
        for thread in sending {
            match thread.join() {
                Ok((positions, Ok((sent, more)))) => {
                    notes.extend(more);
                    for (position, report) in positions.into_iter().zip(sent) {
                        reports[position] = Some(report);
                    }
                }
                Ok((_, Err(error))) => failure = Some(error),
                Err(_) => failure = Some(Failure::new("a sending thread panicked", "report this")),
            }
        }
        if failure.is_none() {
            let last_tx_ns = reports
                .iter()
                .flatten()
                .map(|report| report.last_tx_ns)
                .max()
                .unwrap_or(0);
            while !watch.residue_over(last_tx_ns.max(start_ns)) {
                if asked_to_stop() {
                    stopped_early = true;
                    break;
                }
                if receiving.iter().any(std::thread::ScopedJoinHandle::is_finished) {
                    break;
                }
                watch.pause();
            }
        }
        stop_receiving.store(true, Ordering::Relaxed);
        for thread in receiving {
            match thread.join() {
                Ok(Ok(more)) => notes.extend(more),
                Ok(Err(error)) => failure = failure.or(Some(error)),
                Err(_) => {
                    failure =
                        failure.or_else(|| Some(Failure::new("a receiving thread panicked", "report this")))
                }
            }
        }
        let stalls: Vec<_> = watchers
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .collect();
        match failure {
            Some(failure) => Err(Failure::new(
                format!("trial {}: {}", trial.id, failure.message),
                failure.hint,
            )),
            None => Ok((reports.into_iter().flatten().collect::<Vec<_>>(), stalls)),
        }
    })?;
    bench.idle.extend(live_senders.into_iter().flatten());
    for (port, departures) in bench.ports.iter().zip(departures) {
        let mut leaving: Vec<&mut SendReport> = (parts.iter().zip(&mut reports))
            .filter(|(part, _)| part.stream.from == port.told.name)
            .map(|(_, report)| report)
            .collect();
        if let Some(departures) = departures {
            notes.extend(departures.settle(port, &mut leaving));
        }
    }
    steps.sample();
    *bench.next_sequence += reports.iter().map(|report| report.sent).max().unwrap_or(0) + 1;

    let (senders_run_ms, senders_wait_ms) = crate::threads::SENDERS.take_ms();
    let (receivers_run_ms, receivers_wait_ms) = crate::threads::RECEIVERS.take_ms();
    let mut result = TrialResult {
        id: trial.id.clone(),
        start_ns,
        last_tx_ns: reports.iter().map(|report| report.last_tx_ns).max().unwrap_or(0),
        duration_s: 0.0,
        intended_duration_s: trial.duration_s,
        streams: Vec::new(),
        ports: Vec::new(),
        host_stalls: Vec::new(),
        host_stall_ms_total: BTreeMap::new(),
        host_stalls_more: 0,
        senders_run_ms,
        senders_wait_ms,
        receivers_run_ms,
        receivers_wait_ms,
        clock_step_ns: steps.step_ns(),
        stopped_early,
        notes,
    };
    for (of, stream) in trial.streams.iter().enumerate() {
        let mut both = Vec::new();
        for (port, count) in names.iter().zip(&counts) {
            for (place, position) in arriving(&parts, port).enumerate() {
                if parts[position].of == of {
                    both.push((&reports[position], &count.streams[place]));
                }
            }
        }
        if !both.is_empty() {
            let told = result::stream_result(stream, &both, start_ns, trial, stopped_early)?;
            result.streams.push(told);
        }
    }
    result.duration_s = result
        .streams
        .iter()
        .map(|stream| stream.duration_s)
        .fold(0.0, f64::max);
    for (port, count) in bench.ports.iter().zip(&counts) {
        result.ports.push(PortResult {
            name: port.told.name.clone(),
            rx_overrun: count.overrun,
            foreign: count.foreign,
            rx_total: count.total,
            merged: count.merged,
        });
        if count.merged > 0 {
            result.notes.push(format!(
                "{} frames longer than any sent arrived at {}: its receive offload merges frames (ethtool -K {} gro off)",
                count.merged, port.told.name, port.told.interface
            ));
        }
    }
    for (&cpu, stalls) in bench.watch_cpus.iter().zip(stalls) {
        result
            .host_stall_ms_total
            .insert(cpu.to_string(), stalls.total_ms);
        result.host_stalls.extend(stalls.listed);
        result.host_stalls_more += stalls.more;
        result.notes.extend(stalls.notes);
    }
    result.host_stalls.sort_by_key(|stall| stall.at_ns);
    Ok(result)
}
