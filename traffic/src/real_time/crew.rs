// SPDX-License-Identifier: Apache-2.0
//! The threads of a trial: one for each sending lane, each receiving port, and each CPU that is watched for stalls.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;

use crate::count::live::Live;
use crate::failure::{Failure, Outcome};
use crate::host::host_stalls::{self, Stalls};
use crate::host::netlink::Link;
use crate::port::Rx;
use crate::real_time::lanes::{Lane, Way};
use crate::real_time::watch::Watch;
use crate::receive::port_count::PortCount;
use crate::send::live_sender::LiveSender;
use crate::send::packet_sender;
use crate::send::report::SendReport;

/// The work of one receiving thread.
pub struct Receiver<'a> {
    pub name: &'a str,
    pub cpu: Option<usize>,
    pub rx: &'a mut Rx,
    pub count: &'a mut PortCount,
}

/// The work of all threads.
pub struct Crew<'a> {
    pub lanes: Vec<Lane<'a>>,
    /// One entry for each lane; None for a lane that sends packets.
    pub live_senders: &'a [Option<LiveSender>],
    pub receivers: Vec<Receiver<'a>>,
    pub watch_cpus: &'a [usize],
    /// Number of the trial's parts in all lanes.
    pub parts: usize,
}

/// The outcome of the work of all threads.
#[derive(Default)]
pub struct Done {
    /// One report for each part, in their order.
    pub reports: Vec<SendReport>,
    /// One entry for each CPU that was watched.
    pub stalls: Vec<Stalls>,
    pub warnings: Vec<String>,
}

/// The positions of a lane's parts among all parts, their reports, and notes.
type Sent = (Vec<usize>, Outcome<(Vec<SendReport>, Vec<String>)>);
type Sending<'scope> = Vec<ScopedJoinHandle<'scope, Sent>>;
type Receiving<'scope> = Vec<ScopedJoinHandle<'scope, Outcome<Vec<String>>>>;

/// A sender of live frames, with the counters and the interfaces of its streams. The calling thread of `Crew::work`
/// must attend it while it runs.
struct Attended<'a> {
    sender: &'a LiveSender,
    told: Vec<(Arc<Live>, &'a Link)>,
}

impl<'a> Crew<'a> {
    /// Starts all threads, waits until sending and the wait for the residue are over, and ends the threads. Fails if
    /// one of the threads failed or an interface went down.
    pub fn work(self, watch: &mut Watch) -> Outcome<Done> {
        let (stop_sending, stop_receiving) = (AtomicBool::new(false), AtomicBool::new(false));
        let sending_is_over = AtomicBool::new(false);
        let start_ns = watch.start_ns;
        let id = watch.trial.id.clone();
        // The work that measures a CPU's speed would delay frames on the CPUs that send or receive.
        let own_cpus: HashSet<usize> = (self.lanes.iter().map(|lane| lane.cpu))
            .chain(self.receivers.iter().map(|receiver| receiver.cpu))
            .flatten()
            .collect();
        let done = std::thread::scope(|scope| {
            let (stop, over) = (&stop_receiving, &sending_is_over);
            let watching: Vec<_> = (self.watch_cpus.iter())
                .map(|&cpu| (cpu, (!own_cpus.contains(&cpu)).then_some(over)))
                .map(|(cpu, over)| scope.spawn(move || host_stalls::watch(cpu, over, stop)))
                .collect();
            let receiving: Receiving = (self.receivers.into_iter())
                .map(|receiver| scope.spawn(move || receiver.receive(stop)))
                .collect();
            let attended = attended(&self.lanes, self.live_senders);
            let stop = &stop_sending;
            let sending: Sending = (self.lanes.into_iter().zip(self.live_senders))
                .map(|(lane, live)| scope.spawn(move || send(lane, live.as_ref(), start_ns, stop)))
                .collect();
            let mut done = Done::default();
            let failed = wait_for_senders(&sending, &receiving, &attended, stop, watch);
            let sent = join_senders(sending, self.parts, &mut done).and(failed.map_or(Ok(()), Err));
            sending_is_over.store(true, Ordering::Relaxed);
            if sent.is_ok() {
                watch.sending_is_over();
                wait_for_residue(&done.reports, &receiving, watch);
            }
            stop_receiving.store(true, Ordering::Relaxed);
            let received = join_receivers(receiving, &mut done);
            done.stalls = (watching.into_iter())
                .filter_map(|thread| thread.join().ok())
                .collect();
            sent.and(received).map(|()| done)
        });
        done.map_err(|failure| Failure::new(format!("trial {id}: {}", failure.message), failure.hint))
    }
}

impl Receiver<'_> {
    fn receive(self, stop: &AtomicBool) -> Outcome<Vec<String>> {
        match self.rx {
            Rx::Packets(receiver) => self.count.run(self.cpu, receiver.as_mut(), stop),
            Rx::Kernel(receiver) => receiver.run(self.cpu, self.count, stop),
        }
    }
}

fn attended<'a>(lanes: &[Lane<'a>], live_senders: &'a [Option<LiveSender>]) -> Vec<Attended<'a>> {
    let both = lanes.iter().zip(live_senders);
    both.filter_map(|(lane, sender)| {
        let (Some(sender), Way::Live(ports)) = (sender, &lane.way) else {
            return None;
        };
        let lives = lane.streams.iter().map(|stream| stream.live.clone());
        let told = lives.zip(ports.iter().map(|port| port.link)).collect();
        Some(Attended { sender, told })
    })
    .collect()
}

/// Sends the streams of a lane from the calling thread.
fn send(lane: Lane, live: Option<&LiveSender>, start_ns: u64, stop: &AtomicBool) -> Sent {
    let sent = match (lane.way, live) {
        (Way::Packets(mut ports), _) => {
            packet_sender::run(lane.cpu, lane.streams, &mut ports, start_ns, stop)
        }
        (Way::Live(_), Some(live)) => live
            .run(lane.cpu)
            .map(|notes| (live.reports(lane.streams), notes)),
        (Way::Live(_), None) => Err(Failure::new("a lane without its sender", "report this")),
    };
    (lane.positions, sent)
}

/// Waits until all sending threads have ended; returns the failure of a port that went down.
fn wait_for_senders(
    sending: &Sending,
    receiving: &Receiving,
    attended: &[Attended],
    stop: &AtomicBool,
    watch: &mut Watch,
) -> Option<Failure> {
    let mut failure = None;
    while !sending.iter().all(ScopedJoinHandle::is_finished) {
        if !watch.stopped_early && watch.asked_to_stop() {
            stop.store(true, Ordering::Relaxed);
        }
        if receiving.iter().any(ScopedJoinHandle::is_finished) {
            stop.store(true, Ordering::Relaxed); // a receiver failed; its thread returns the reason
        }
        for live in attended {
            if let Err(down) = live.sender.attend(&live.told, stop) {
                failure = Some(down);
            }
        }
        watch.pause();
    }
    failure
}

/// Takes the reports of all lanes. If lanes failed, returns the failure of the last of them.
fn join_senders(sending: Sending, parts: usize, done: &mut Done) -> Outcome<()> {
    let mut outcome = Ok(());
    let mut reports: Vec<Option<SendReport>> = (0..parts).map(|_| None).collect();
    for thread in sending {
        match thread.join() {
            Ok((positions, Ok((sent, more)))) => {
                done.warnings.extend(more);
                for (position, report) in positions.into_iter().zip(sent) {
                    reports[position] = Some(report);
                }
            }
            Ok((_, Err(failure))) => outcome = Err(failure),
            Err(_) => outcome = Err(Failure::new("a sending thread panicked", "report this")),
        }
    }
    done.reports = reports.into_iter().flatten().collect();
    outcome
}

/// Waits for frames that are still in the DUT.
fn wait_for_residue(reports: &[SendReport], receiving: &Receiving, watch: &mut Watch) {
    let last_tx_ns = reports.iter().map(|report| report.last_tx_ns).max().unwrap_or(0);
    while !watch.residue_over(last_tx_ns.max(watch.start_ns)) {
        if watch.asked_to_stop() || receiving.iter().any(ScopedJoinHandle::is_finished) {
            break;
        }
        watch.pause();
    }
}

/// Takes the notes of all receivers. If receivers failed, returns the failure of the first of them.
fn join_receivers(receiving: Receiving, done: &mut Done) -> Outcome<()> {
    let mut outcome = Ok(());
    for thread in receiving {
        match thread.join() {
            Ok(Ok(more)) => done.warnings.extend(more),
            Ok(Err(failure)) => outcome = outcome.and(Err(failure)),
            Err(_) => outcome = outcome.and(Err(Failure::new("a receiving thread panicked", "report this"))),
        }
    }
    outcome
}
