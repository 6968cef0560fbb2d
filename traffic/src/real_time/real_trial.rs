// SPDX-License-Identifier: Apache-2.0
//! A trial in real time: sends, waits for the residue, counts, and makes the result.

use std::collections::HashSet;

use crate::failure::Outcome;
use crate::frame::test_header::RunKey;
use crate::host::clock::{StepWatch, monotonic_ns};
use crate::host::threads;
use crate::port::{Port, Rx, Tx};
use crate::protocol::{OpenPort, OpenedPort, Trial, TrialResult};
use crate::real_time::crew::{Crew, Done, Receiver};
use crate::real_time::esp_ports;
use crate::real_time::lanes::{self, Lane, Way};
use crate::real_time::port_counters::{self, Leaving, PortCounters};
use crate::real_time::watch::Watch;
use crate::receive::port_count::PortCount;
use crate::receive::stream_count::SLICES;
use crate::send::live_sender::LiveSender;
use crate::send::pace::deadline_ns;
use crate::send::report::SendReport;
use crate::trial::caller::Caller;
use crate::trial::numbering::Numbering;
use crate::trial::parts::{Part, arriving};
use crate::trial::preparation::{self, Prepared};
use crate::trial::result::{self, Counted, Made};
use crate::trial::{check_request, ciphers};

/// Time from the start of the threads to the first departure.
const LEAD_NS: u64 = 40_000_000;

/// The parts of the session that a trial uses.
pub struct Bench<'a> {
    pub ports: &'a mut [Port],
    pub key: RunKey,
    pub watch_cpus: &'a [usize],
    /// Loaded sending programs of earlier trials, which later trials reuse.
    pub idle: &'a mut Vec<LiveSender>,
    pub numbering: &'a mut Numbering,
}

/// The times of a trial.
struct Times {
    start_ns: u64,
    duration_ns: u64,
    deadline_ns: u64,
}

/// A trial whose threads have ended.
struct Sent {
    start_ns: u64,
    stopped_early: bool,
    steps: StepWatch,
    done: Done,
}

/// Runs the trial. The calling thread waits for its end.
pub fn run(mut bench: Bench, trial: &Trial, caller: &mut Caller) -> Outcome<TrialResult> {
    let ports: Vec<OpenedPort> = bench.ports.iter().map(|port| port.told.clone()).collect();
    check_request::check(trial, &ports)?;
    let mut prepared = prepare(&bench, trial)?;
    let shortfalls = ciphers::prepare(trial, &mut prepared, caller)?;
    // The receivers take over the difference of the two clocks now.
    let steps = StepWatch::start();
    begin_receiving(&mut bench, &prepared.counts)?;
    let counters: Vec<Option<PortCounters>> = bench.ports.iter().map(PortCounters::begin).collect();
    let most = preparation::most_numbers(trial, &prepared);
    let sent = send_and_receive(&mut bench, trial, &mut prepared, steps, caller);
    let mut sent = sent.inspect_err(|_| bench.numbering.pass_most(&most))?;
    let Prepared {
        parts, mut counts, ..
    } = prepared;
    for count in &mut counts {
        let opened = ciphers::open_kept(trial, count, caller);
        opened.inspect_err(|_| bench.numbering.pass_most(&most))?;
    }
    let reports = &mut sent.done.reports;
    let settled = settle_counters(bench.ports, &counters, &parts, reports, &mut counts);
    sent.done.warnings.extend(settled.warnings);
    let opened = preparation::settle(&parts, reports, &mut counts, &mut bench.numbering.esp);
    sent.steps.sample();
    bench.numbering.pass(reports);
    let counted = Counted {
        parts: &parts,
        reports,
        counts: &counts,
        opened: &opened,
        ports: &ports,
    };
    let made = Made {
        trial,
        start_ns: sent.start_ns,
        stopped_early: sent.stopped_early,
    };
    let mut result = result::trial_result(&made, &counted, settled.notes)?;
    result.shortfall = shortfalls.join("; ");
    result.faults.extend(settled.faults);
    add_host(&mut result, sent, bench.watch_cpus);
    Ok(result)
}

fn prepare(bench: &Bench, trial: &Trial) -> Outcome<Prepared> {
    let asked: Vec<(&OpenPort, bool)> = bench
        .ports
        .iter()
        .map(|port| (&port.asked, matches!(port.tx, Tx::Live(_))))
        .collect();
    let mut prepared = preparation::prepare(trial, &asked, bench.key, bench.numbering)?;
    for (count, port) in prepared.counts.iter_mut().zip(bench.ports.iter()) {
        count.queues = port.rx_queues;
    }
    esp_ports::check(&prepared.parts, bench.ports)?;
    Ok(prepared)
}

/// Makes the ports discard waiting frames, and count from now on.
fn begin_receiving(bench: &mut Bench, counts: &[PortCount]) -> Outcome<()> {
    for (port, count) in bench.ports.iter_mut().zip(counts) {
        match &mut port.rx {
            Rx::Packets(receiver) => receiver.begin()?,
            Rx::Kernel(receiver) => receiver.begin(count, bench.key, &port.netns)?,
        }
    }
    Ok(())
}

/// Sets the time of the start, and lets the threads work until the wait for the residue is over.
fn send_and_receive(
    bench: &mut Bench,
    trial: &Trial,
    prepared: &mut Prepared,
    steps: StepWatch,
    caller: &mut Caller,
) -> Outcome<Sent> {
    let duration_ns = (trial.duration_s * 1e9) as u64;
    let parts = &prepared.parts;
    let (mut senders, mut receivers) = (Vec::new(), Vec::new());
    for (port, count) in bench.ports.iter_mut().zip(&mut prepared.counts) {
        senders.push((&port.asked, port.index as u32, &port.netns, &mut port.tx));
        receivers.push(Receiver {
            name: &port.told.name,
            cpu: port.asked.rx_cpu,
            rx: &mut port.rx,
            count,
        });
    }
    let mut lanes = lanes::lanes(senders, parts, &mut prepared.outgoing);
    let live_senders = live_senders(&lanes, bench.idle, bench.key, duration_ns)?;
    let start_ns = monotonic_ns() + LEAD_NS;
    let times = Times {
        start_ns,
        duration_ns,
        deadline_ns: deadline_ns(start_ns, duration_ns),
    };
    start_lanes(&mut lanes, &live_senders, &times);
    start_receivers(&mut receivers, parts, &times);
    let mut watch = Watch::new(trial, &prepared.lives, steps, start_ns, caller);
    watch.tell();
    let crew = Crew {
        lanes,
        live_senders: &live_senders,
        receivers,
        watch_cpus: bench.watch_cpus,
        parts: parts.len(),
    };
    let done = crew.work(&mut watch)?;
    let Watch {
        steps, stopped_early, ..
    } = watch;
    bench.idle.extend(live_senders.into_iter().flatten());
    Ok(Sent {
        start_ns,
        stopped_early,
        steps,
        done,
    })
}

/// Prepares a sending program for each lane that sends live frames; the other lanes get None.
fn live_senders(
    lanes: &[Lane],
    idle: &mut Vec<LiveSender>,
    key: RunKey,
    duration_ns: u64,
) -> Outcome<Vec<Option<LiveSender>>> {
    let mut found = Vec::new();
    for lane in lanes {
        found.push(match &lane.way {
            Way::Packets(_) => None,
            Way::Live(ports) => {
                let mut sender = LiveSender::get(idle, &lane.streams)?;
                sender.prepare(&lane.streams, ports, key, deadline_ns(0, duration_ns))?;
                Some(sender)
            }
        });
    }
    Ok(found)
}

/// Sets the times of the start and the end in all streams and sending programs.
fn start_lanes(lanes: &mut [Lane], live_senders: &[Option<LiveSender>], times: &Times) {
    for (lane, sender) in lanes.iter_mut().zip(live_senders) {
        for stream in &mut lane.streams {
            stream.schedule.begin_at(times.start_ns);
            stream.until_ns = match stream.schedule.planned() {
                Some(_) => times.deadline_ns,
                None => times.start_ns + times.duration_ns, // a flood ends after the intended duration
            };
        }
        if let Some(sender) = sender {
            sender.set_times(&lane.streams, times.start_ns);
        }
    }
}

/// Sets the time of the start and the planned duration in all counts and receiving programs.
fn start_receivers(receivers: &mut [Receiver], parts: &[Part], times: &Times) {
    for receiver in receivers {
        for stream in &mut receiver.count.streams {
            stream.begin_at(times.start_ns);
        }
        if let Rx::Kernel(program) = receiver.rx {
            let durations: Vec<u64> = arriving(parts, receiver.name)
                .map(|position| {
                    let part = &parts[position];
                    let burst = part.stream.as_ref().and_then(|stream| stream.burst_frames);
                    burst.map_or(times.duration_ns, |frames| {
                        // This part has only its own frames of the burst.
                        part.schedule.due_ns(part.schedule.planned().unwrap_or(frames))
                    })
                })
                .collect();
            let slice_ns = (times.duration_ns / SLICES as u64).max(1);
            program.set_times(
                times.start_ns,
                slice_ns,
                &durations,
                times.deadline_ns,
                receiver.count,
            );
        }
    }
}

/// Remarks from the counters of the ports.
#[derive(Default)]
struct Settled {
    faults: Vec<String>,
    warnings: Vec<String>,
    notes: Vec<String>,
}

/// Adds what the ports' counters show: to the reports the frames that were refused and those that never left, to the
/// counts the frames that the ports' cards dropped.
fn settle_counters(
    ports: &mut [Port],
    counters: &[Option<PortCounters>],
    parts: &[Part],
    reports: &mut [SendReport],
    counts: &mut [PortCount],
) -> Settled {
    let deadline_ns = port_counters::deadline_ns();
    let mut accounted = vec![0; parts.len()];
    for (port, count) in ports.iter().zip(counts.iter()) {
        for (position, stream) in arriving(parts, &port.told.name).zip(&count.streams) {
            accounted[position] = stream.sequence.accounted();
        }
    }
    let mut settled = Settled::default();
    for (port, counters) in ports.iter_mut().zip(counters) {
        let Some(counters) = counters else { continue };
        let mut leaving: Vec<Leaving> = (parts.iter().zip(reports.iter_mut()).zip(&accounted))
            .filter(|((part, _), _)| part.from == port.told.name)
            .map(|((_, report), &accounted)| Leaving { report, accounted })
            .collect();
        let departures = counters.departures(port, &mut leaving, deadline_ns);
        let of_it = parts.iter().filter(|part| part.from == port.told.name);
        let others: HashSet<_> = of_it.map(|part| (part.stream.is_some(), part.of)).collect();
        if let Some(gone) = departures.gone.as_ref().filter(|_| others.len() > 1) {
            let fault = format!("{gone}, and of which stream they were is not known");
            settled.faults.push(fault);
        }
        settled.notes.extend(departures.gone);
        settled.warnings.extend(departures.uncounted);
    }
    for ((port, counters), count) in ports.iter().zip(counters).zip(counts) {
        let Some(counters) = counters else { continue };
        let missing: u64 = arriving(parts, &port.told.name)
            .map(|position| {
                let left = reports[position].sent - reports[position].vanished;
                left.saturating_sub(accounted[position])
            })
            .sum();
        count.overrun += counters.missed(port, missing.saturating_sub(count.overrun), deadline_ns);
        let damaged = counters.damaged(port, missing.saturating_sub(count.overrun));
        count.faults.extend(port_counters::cable_fault(damaged));
    }
    settled
}

/// Adds the disturbances by the host during the trial, and the warnings of the threads, for instance about a thread
/// that could not be pinned to its CPU.
fn add_host(result: &mut TrialResult, sent: Sent, watch_cpus: &[usize]) {
    (result.senders_run_ms, result.senders_wait_ms) = threads::SENDERS.take_ms();
    (result.receivers_run_ms, result.receivers_wait_ms) = threads::RECEIVERS.take_ms();
    result.clock_step_ns = sent.steps.step_ns();
    let mut warnings = sent.done.warnings;
    for (&cpu, stalls) in watch_cpus.iter().zip(sent.done.stalls) {
        result
            .host_stall_ms_total
            .insert(cpu.to_string(), stalls.total_ms);
        result.host_stalls.extend(stalls.listed);
        result.host_stalls_more += stalls.more;
        result.host_stalls_more_ms += stalls.more_ms;
        result.stalls_watched &= stalls.watched;
        if let Some(speed) = stalls.speed.of(cpu) {
            result.cpu_speed.insert(cpu.to_string(), speed);
        }
        warnings.extend(stalls.notes);
    }
    result.notes.extend(warnings.iter().cloned());
    result.warnings.extend(warnings);
    result.host_stalls.sort_by_key(|stall| stall.at_ns);
}
