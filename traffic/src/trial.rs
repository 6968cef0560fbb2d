// SPDX-License-Identifier: Apache-2.0
//! One trial: send, wait for the residue, count, report.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::clock::{StepWatch, monotonic_ns};
use crate::departures::Departures;
use crate::esp::{Numbers, ways};
use crate::failure::{Failure, Outcome};
use crate::frame::RunKey;
use crate::lanes::{self, Way};
use crate::port::{Port, Rx, Tx};
use crate::preparation::{self, Prepared, arriving};
use crate::protocol::{self, Event, OpenPort, OpenedPort, TrialResult};
use crate::receiver::SLICES;
use crate::result::Counted;
use crate::sender::{self, SendReport};
use crate::watch::{PROGRESS_NS, Watch};
use crate::xdp::sender::LiveSender;
use crate::{request, result, stalls};

/// Time for all threads to be up before the first frame is due.
const LEAD_NS: u64 = 40_000_000;
/// A trial sends all its frames. Where that takes longer than intended it goes on for so many times its duration
/// and so much more; what has not left by then is unsent. Documented in docs/generators.md; generators/base.py
/// (`longest_s`) knows it, too.
const LONGEST: f64 = 1.5;
const LONGEST_MORE_NS: u64 = 500_000_000;
/// No port is faster.
pub const FASTEST_FPS: f64 = 50e6;

/// No frame leaves from then on.
pub fn deadline_ns(start_ns: u64, duration_ns: u64) -> u64 {
    start_ns + (duration_ns as f64 * LONGEST) as u64 + LONGEST_MORE_NS
}

/// What a trial needs of the session.
pub struct Bench<'a> {
    pub ports: &'a mut [Port],
    pub key: RunKey,
    pub watch_cpus: &'a [usize],
    /// Sending programs of trials before.
    pub idle: &'a mut Vec<LiveSender>,
    /// Sequence numbers go on from trial to trial: a late frame of an earlier one is foreign.
    pub next_sequence: &'a mut u64,
    /// Those of ESP go on, too.
    pub numbers: &'a mut Numbers,
}

/// Runs the trial from the calling thread. `emit` takes progress; `asked_to_stop` is polled.
pub fn run(
    bench: Bench,
    trial: &protocol::Trial,
    emit: &mut dyn FnMut(&Event),
    asked_to_stop: &mut dyn FnMut() -> bool,
) -> Outcome<TrialResult> {
    let told: Vec<OpenedPort> = bench.ports.iter().map(|port| port.told.clone()).collect();
    request::check(trial, &told)?;
    let duration_ns = (trial.duration_s * 1e9) as u64;
    let names: Vec<String> = bench.ports.iter().map(|port| port.told.name.clone()).collect();
    let asked: Vec<(&OpenPort, bool)> = bench
        .ports
        .iter()
        .map(|port| (&port.asked, matches!(port.tx, Tx::Live(_))))
        .collect();
    let Prepared {
        parts,
        lives,
        mut counts,
        mut outgoing,
    } = preparation::prepare(trial, &asked, bench.key, *bench.next_sequence, bench.numbers)?;
    ways::check(&parts, bench.ports)?;
    let shortfalls = ways::prepare(trial, &parts, &mut outgoing, &mut counts, emit, asked_to_stop)?;
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
                sender.prepare(&lane.streams, ports, bench.key, deadline_ns(0, duration_ns))?;
                Some(sender)
            }
        });
    }

    let mut steps = StepWatch::start();
    let start_ns = monotonic_ns() + LEAD_NS;
    let deadline_ns = deadline_ns(start_ns, duration_ns);
    for (lane, sender) in lanes.iter_mut().zip(&live_senders) {
        for stream in &mut lane.streams {
            stream.schedule.begin_at(start_ns);
            stream.until_ns = match stream.schedule.planned() {
                Some(_) => deadline_ns,
                None => start_ns + duration_ns, // a flood is as long as it was asked for
            };
        }
        if let Some(sender) = sender {
            sender.set_times(&lane.streams, start_ns);
        }
    }
    for ((_, rx), (port_name, count)) in receivers.iter_mut().zip(names.iter().zip(&mut counts)) {
        for stream in &mut count.streams {
            stream.begin_at(start_ns);
        }
        if let Rx::Kernel(receiver) = rx {
            let durations: Vec<u64> = arriving(&parts, port_name)
                .map(|position| {
                    let part = &parts[position];
                    let burst = part.stream.as_ref().and_then(|stream| stream.burst_frames);
                    burst.map_or(duration_ns, |frames| part.schedule.due_ns(frames))
                })
                .collect();
            let slice_ns = (duration_ns / SLICES as u64).max(1);
            receiver.set_times(start_ns, slice_ns, &durations, deadline_ns, count);
        }
    }

    let stop_sending = AtomicBool::new(false);
    let stop_receiving = AtomicBool::new(false);
    let mut stopped_early = false;
    let mut notes = Vec::new();
    let mut warnings = Vec::new();
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
                        sender::run(lane.cpu, lane.streams, &mut ports, start_ns, stop)
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
                    warnings.extend(more);
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
                Ok(Ok(more)) => warnings.extend(more),
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
    let mut faults = Vec::new();
    for (port, departures) in bench.ports.iter().zip(departures) {
        let mut leaving: Vec<&mut SendReport> = (parts.iter().zip(&mut reports))
            .filter(|(part, _)| part.from == port.told.name)
            .map(|(_, report)| report)
            .collect();
        if let Some(departures) = departures {
            let gone = departures.settle(port, &mut leaving);
            let of_it = parts.iter().filter(|part| part.from == port.told.name);
            let others: HashSet<_> = of_it.map(|part| (part.stream.is_some(), part.of)).collect();
            if let Some(gone) = gone.as_ref().filter(|_| others.len() > 1) {
                faults.push(format!("{gone}, and of which stream they were is not known"));
            }
            notes.extend(gone);
        }
    }
    for count in &mut counts {
        ways::open_kept(trial, count, emit, asked_to_stop)?;
    }
    let opened = preparation::settle(&parts, &reports, &mut counts, bench.numbers);
    steps.sample();
    *bench.next_sequence += reports.iter().map(|report| report.sent).max().unwrap_or(0) + 1;

    let (senders_run_ms, senders_wait_ms) = crate::threads::SENDERS.take_ms();
    let (receivers_run_ms, receivers_wait_ms) = crate::threads::RECEIVERS.take_ms();
    let counted = Counted {
        parts: &parts,
        reports: &reports,
        counts: &counts,
        opened: &opened,
        ports: &told,
    };
    let mut result = TrialResult {
        shortfall: shortfalls.join("; "),
        senders_run_ms,
        senders_wait_ms,
        receivers_run_ms,
        receivers_wait_ms,
        clock_step_ns: steps.step_ns(),
        faults,
        ..result::trial_result(trial, &counted, start_ns, stopped_early, notes)?
    };
    // Who is not where it should be waits for others.
    for (&cpu, stalls) in bench.watch_cpus.iter().zip(stalls) {
        result
            .host_stall_ms_total
            .insert(cpu.to_string(), stalls.total_ms);
        result.host_stalls.extend(stalls.listed);
        result.host_stalls_more += stalls.more;
        result.stalls_watched &= stalls.watched;
        warnings.extend(stalls.notes);
    }
    result.notes.extend(warnings.iter().cloned());
    result.warnings.extend(warnings);
    result.host_stalls.sort_by_key(|stall| stall.at_ns);
    Ok(result)
}
