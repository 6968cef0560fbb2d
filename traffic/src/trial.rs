// SPDX-License-Identifier: Apache-2.0
//! One trial: send, wait for the residue, count, report.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::clock::{StepWatch, monotonic_ns};
use crate::failure::{Failure, Outcome};
use crate::frame::{RunKey, Template};
use crate::pace::Schedule;
use crate::port::{FrameSender, Port};
use crate::protocol::{self, Event, LossEpisode, PortResult, StreamResult, TrialResult};
use crate::receiver::{PortCount, StreamCount};
use crate::sender::{self, Live, Outgoing, SendReport};
use crate::stalls;
use crate::verify::Expected;

/// Time for all threads to be up before the first frame is due.
const LEAD_NS: u64 = 30_000_000;
/// A receive block may be handed over so much later than its last frame; nothing ends sooner.
const SETTLE_NS: u64 = 30_000_000;
/// Frames that are late at the deadline may still leave for 0.1 % of the duration, at most 1 ms.
const GRACE_NS: f64 = 1_000_000.0;
const EPISODES: u64 = 1000;
/// No port is faster: bounds the sequence numbers of a flood.
const FASTEST_FPS: f64 = 50e6;
/// After residue_s, so long a silence means that nothing more comes.
const SILENCE_S: f64 = 0.1;
const PROGRESS_NS: u64 = 500_000_000;

/// What a trial needs of the session.
pub struct Bench<'a> {
    pub ports: &'a mut [Port],
    pub key: RunKey,
    pub watch_cpus: &'a [usize],
    /// Sequence numbers go on from trial to trial: a late frame of an earlier one is foreign.
    pub next_sequence: &'a mut u64,
}

/// A user's request that makes no sense is refused before any frame is sent.
fn check(trial: &protocol::Trial, ports: &[Port]) -> Outcome<()> {
    let seconds = |name: &str, value: f64, least: f64, most: f64| {
        if (least..=most).contains(&value) {
            Ok(())
        } else {
            Err(Failure::new(
                format!("{name} is {value}, expected {least} to {most} seconds"),
                "",
            ))
        }
    };
    seconds("duration_s", trial.duration_s, 0.001, 86_400.0)?;
    seconds("residue_s", trial.residue_s, 0.0, 3_600.0)?;
    seconds("residue_max_s", trial.residue_max_s, 0.0, 3_600.0)?;
    seconds("quiet_s", trial.quiet_s.unwrap_or(0.0), 0.0, 3_600.0)?;
    if trial.streams.is_empty() {
        return Err(Failure::new(
            "streams is empty",
            "give one stream for each direction of traffic",
        ));
    }
    for (position, stream) in trial.streams.iter().enumerate() {
        let wrong =
            |message: String, hint: &str| Err(Failure::new(format!("stream {}: {message}", stream.id), hint));
        if trial.streams[..position]
            .iter()
            .any(|other| other.id == stream.id)
        {
            return wrong(
                "the id is used twice".into(),
                "each stream needs an id of its own",
            );
        }
        for name in [&stream.from, &stream.to] {
            if !ports.iter().any(|port| port.told.name == *name) {
                let open: Vec<_> = ports.iter().map(|port| port.told.name.as_str()).collect();
                return wrong(
                    format!("port '{name}' is not open"),
                    &format!(
                        "open ports: {}",
                        if open.is_empty() {
                            "none".into()
                        } else {
                            open.join(", ")
                        }
                    ),
                );
            }
        }
        if let Some(rate) = stream.rate_fps
            && !(rate.is_finite() && rate > 0.0 && rate <= FASTEST_FPS)
        {
            return wrong(
                format!("rate_fps is {rate}, expected more than 0 and at most {FASTEST_FPS}"),
                "",
            );
        }
        if stream.burst_frames == Some(0) {
            return wrong("burst_frames is 0".into(), "a burst has at least one frame");
        }
        for port in ports
            .iter()
            .filter(|port| port.told.name == stream.from || port.told.name == stream.to)
        {
            let longest = stream.frames.iter().map(|share| share.size).max().unwrap_or(0);
            if longest > port.told.mtu as usize + 18 {
                return wrong(
                    format!(
                        "frame size {longest} exceeds what {} can carry: MTU {} + 18 bytes of Ethernet header and FCS",
                        port.told.interface, port.told.mtu
                    ),
                    "use smaller frames, or raise the MTU of both ends",
                );
            }
        }
    }
    Ok(())
}

/// One thread's worth of sending: the ports of a CPU and the streams that leave from them.
struct Lane<'a> {
    cpu: Option<usize>,
    ports: Vec<&'a mut dyn FrameSender>,
    streams: Vec<Outgoing>,
    /// Which stream of the trial each of `streams` is.
    positions: Vec<usize>,
}

/// Runs the trial from the calling thread. `emit` takes progress; `asked_to_stop` is polled.
pub fn run(
    bench: Bench,
    trial: &protocol::Trial,
    emit: &mut dyn FnMut(&Event),
    asked_to_stop: &mut dyn FnMut() -> bool,
) -> Outcome<TrialResult> {
    check(trial, bench.ports)?;
    let duration_ns = (trial.duration_s * 1e9) as u64;
    let first_sequence = *bench.next_sequence;
    let mut templates = Vec::new();
    for stream in &trial.streams {
        templates.push(Template::new(stream, bench.key)?);
    }
    let lives: Vec<Arc<Live>> = trial.streams.iter().map(|_| Arc::default()).collect();

    for port in bench.ports.iter_mut() {
        port.receiver.begin()?;
    }
    let mut steps = StepWatch::start();
    let start_ns = monotonic_ns() + LEAD_NS;
    let grace_ns = (duration_ns as f64 * 0.001).min(GRACE_NS) as u64;
    let deadline_ns = start_ns + duration_ns + grace_ns;

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
        for (position, stream) in trial
            .streams
            .iter()
            .enumerate()
            .filter(|(_, s)| s.to == port.told.name)
        {
            let most = stream.burst_frames.unwrap_or_else(|| {
                (stream.rate_fps.unwrap_or(FASTEST_FPS) * trial.duration_s).ceil() as u64 + 1
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
                .push(StreamCount::new(start_ns, duration_ns, lives[position].clone())?);
        }
        counts.push(count);
    }

    let (mut senders, mut receivers) = (Vec::new(), Vec::new());
    for port in bench.ports.iter_mut() {
        senders.push((port.told.name.clone(), port.asked.tx_cpu, &mut port.sender));
        receivers.push((port.asked.rx_cpu, &mut port.receiver));
    }
    let mut lanes: Vec<Lane> = Vec::new();
    let mut templates: Vec<Option<Template>> = templates.into_iter().map(Some).collect();
    for (name, cpu, port) in senders {
        let leaving: Vec<usize> = (0..trial.streams.len())
            .filter(|&position| trial.streams[position].from == name)
            .collect();
        if leaving.is_empty() {
            continue;
        }
        let shared = lanes.iter().position(|lane| cpu.is_some() && lane.cpu == cpu);
        let lane = shared.unwrap_or_else(|| {
            lanes.push(Lane {
                cpu,
                ports: Vec::new(),
                streams: Vec::new(),
                positions: Vec::new(),
            });
            lanes.len() - 1
        });
        let lane = &mut lanes[lane];
        lane.ports.push(port.as_mut());
        for position in leaving {
            let stream = &trial.streams[position];
            let schedule = match (stream.burst_frames, stream.rate_fps) {
                (Some(frames), _) => Schedule::burst(start_ns, frames),
                (None, Some(rate)) => Schedule::at_rate(start_ns, rate, trial.duration_s),
                (None, None) => Schedule::flood(start_ns),
            };
            if let Some(template) = templates[position].take() {
                let port = lane.ports.len() - 1;
                lane.streams.push(Outgoing::new(
                    template,
                    schedule,
                    first_sequence,
                    lives[position].clone(),
                    port,
                )?);
                lane.positions.push(position);
            }
        }
    }

    let stop_sending = AtomicBool::new(false);
    let stop_receiving = AtomicBool::new(false);
    let mut stopped_early = false;
    let mut notes = Vec::new();
    let (reports, stalls) = std::thread::scope(|scope| -> Outcome<_> {
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
        for (count, (cpu, receiver)) in counts.iter_mut().zip(receivers) {
            let stop = &stop_receiving;
            receiving.push(scope.spawn(move || count.run(cpu, receiver.as_mut(), stop)));
        }
        let mut sending = Vec::new();
        for lane in lanes {
            let stop = &stop_sending;
            sending.push(scope.spawn(move || {
                let mut ports = lane.ports;
                let sent = sender::run(lane.cpu, lane.streams, &mut ports, start_ns, deadline_ns, stop);
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
        while !sending.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            if !stopped_early && asked_to_stop() {
                stopped_early = true;
                stop_sending.store(true, Ordering::Relaxed);
            }
            if receiving.iter().any(std::thread::ScopedJoinHandle::is_finished) {
                stop_sending.store(true, Ordering::Relaxed); // a port failed; its thread says how
            }
            watch.pause();
        }
        let mut reports: Vec<Option<SendReport>> = trial.streams.iter().map(|_| None).collect();
        let mut failure = None;
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
    for (position, (stream, report)) in trial.streams.iter().zip(&reports).enumerate() {
        let mut arrived = None;
        for (port, count) in bench
            .ports
            .iter()
            .zip(&counts)
            .filter(|(port, _)| port.told.name == stream.to)
        {
            let place = trial.streams[..position]
                .iter()
                .filter(|other| other.to == port.told.name)
                .count();
            arrived = count.streams.get(place);
        }
        if let Some(arrived) = arrived {
            result.streams.push(stream_result(
                stream,
                report,
                arrived,
                start_ns,
                trial,
                stopped_early,
            )?);
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

/// The trial as seen from outside while its threads work.
struct Watch<'a> {
    trial: &'a protocol::Trial,
    lives: &'a [Arc<Live>],
    steps: &'a mut StepWatch,
    start_ns: u64,
    next_progress_ns: u64,
    emit: &'a mut dyn FnMut(&Event),
}

impl Watch<'_> {
    fn sum(&self, what: impl Fn(&Live) -> u64) -> u64 {
        self.lives.iter().map(|live| what(live)).sum()
    }

    /// A short sleep, with progress when its time has come.
    fn pause(&mut self) {
        std::thread::sleep(Duration::from_millis(10));
        let now = monotonic_ns();
        if now >= self.next_progress_ns {
            self.next_progress_ns += PROGRESS_NS;
            self.steps.sample();
            let event = Event::Progress {
                id: self.trial.id.clone(),
                elapsed_s: now.saturating_sub(self.start_ns) as f64 / 1e9,
                tx_frames: self.sum(|live| live.sent.load(Ordering::Relaxed)),
                rx_frames: self.sum(|live| live.arrived.load(Ordering::Relaxed)),
            };
            (self.emit)(&event);
        }
    }

    /// Whether the wait for frames still on their way may end.
    fn residue_over(&self, last_tx_ns: u64) -> bool {
        let now = monotonic_ns();
        let waited_ns = now.saturating_sub(last_tx_ns);
        let last_rx_ns = self
            .lives
            .iter()
            .map(|live| live.last_rx_ns.load(Ordering::Relaxed))
            .max()
            .unwrap_or(0);
        let silent_ns = now.saturating_sub(last_rx_ns.max(last_tx_ns));
        let longer = |ns: u64, seconds: f64| ns as f64 >= seconds * 1e9 && ns >= SETTLE_NS;
        let complete = self
            .lives
            .iter()
            .all(|live| live.accounted.load(Ordering::Acquire) >= live.sent.load(Ordering::Relaxed));
        if let Some(quiet_s) = self.trial.quiet_s
            && complete
            && longer(silent_ns, quiet_s)
        {
            return true;
        }
        longer(waited_ns, self.trial.residue_s)
            && (longer(silent_ns, SILENCE_S) || longer(waited_ns, self.trial.residue_max_s))
    }
}

fn stream_result(
    stream: &protocol::Stream,
    report: &SendReport,
    arrived: &StreamCount,
    start_ns: u64,
    trial: &protocol::Trial,
    stopped_early: bool,
) -> Outcome<StreamResult> {
    let unsent = report.planned.map_or(0, |planned| planned - report.sent);
    let interval_ns = if report.interval_ns > 0.0 {
        report.interval_ns
    } else {
        // Back to back: the last frame takes as long as the others did on average.
        report.last_tx_ns.saturating_sub(start_ns) as f64 / report.sent.max(1) as f64
    };
    let mut duration_s = match (report.sent, report.interval_ns > 0.0) {
        (0, _) => 0.0,
        (_, true) => (report.last_tx_ns.saturating_sub(start_ns) as f64 + interval_ns) / 1e9,
        (_, false) => report.last_tx_ns.saturating_sub(start_ns) as f64 / 1e9,
    };
    if unsent > 0 && !stopped_early {
        // The port held frames back until the deadline: that time was spent sending, too.
        duration_s = duration_s.max(trial.duration_s);
    }
    let mut loss_episodes = Vec::new();
    let mut loss_episodes_more = 0;
    arrived.sequence.missing_runs(report.sent, |run| {
        if (loss_episodes.len() as u64) < EPISODES {
            loss_episodes.push(LossEpisode {
                from_ns: report.sent_at(run.first),
                to_ns: report.sent_at(run.last),
                frames: run.last - run.first + 1,
            });
        } else {
            loss_episodes_more += 1;
        }
    });
    let sequence = &arrived.sequence;
    Ok(StreamResult {
        id: stream.id,
        from: stream.from.clone(),
        to: stream.to.clone(),
        intended_frames: report.planned,
        tx_frames: report.sent,
        tx_refused: report.refused,
        unsent,
        tx_retries: report.retries,
        duration_s,
        rx_frames: sequence.received,
        lost: sequence.lost(report.sent),
        duplicated: sequence.duplicated,
        reordered: sequence.reordered,
        corrupted: sequence.corrupted,
        rx_after_stop: arrived.after_stop,
        drain_s: if arrived.last_rx_ns == 0 {
            0.0
        } else {
            arrived.last_rx_ns.saturating_sub(report.last_tx_ns) as f64 / 1e9
        },
        latency_us: crate::latency::latency(&arrived.latency)?,
        slices: arrived.slices(),
        loss_episodes,
        loss_episodes_more,
        late_frames: report.late_frames,
        lateness_us: crate::latency::lateness(&report.lateness),
        tx_stalls: report.stalls.clone(),
        tx_stalls_more: report.stalls_more,
    })
}
