// SPDX-License-Identifier: Apache-2.0
//! A trial in virtual time. It starts no threads and uses only the virtual time of the links, so that the times of all
//! departures and arrivals are exact.

use std::sync::Arc;

use crate::count::live::Live;
use crate::failure::Failure;
use crate::failure::Outcome;
use crate::frame::test_header::RunKey;
use crate::host::clock::monotonic_ns;
use crate::protocol::{Command, Event, LinkCounts, LinkErrors, OpenPort, Trial, TrialResult};
use crate::receive::port_count::PortCount;
use crate::send::outgoing::Outgoing;
use crate::send::report::SendReport;
use crate::trial::caller::Caller;
use crate::trial::check_request;
use crate::trial::numbering::Numbering;
use crate::trial::parts::Part;
use crate::trial::preparation::{self, Prepared};
use crate::trial::progress::{PROGRESS_NS, progress, residue_over};
use crate::trial::result::{self, Counted, Made};
use crate::virtual_time::console_command::{self, Passage};
use crate::virtual_time::link::Link;
use crate::virtual_time::link_port::STEP_NS;
use crate::virtual_time::memory::{COUNTS, Memory};
use crate::virtual_time::world::World;
use crate::wire::RxFrame;

/// Longest time after the intended duration in which late frames may still leave. The time is also at most 0.1 % of the
/// duration. No sender stalls in virtual time: if a sender is late, its rate exceeds that of its link.
const GRACE_NS: f64 = 1_000_000.0;

/// Returns the time from which late frames are not sent any more. A flood has no late frames, and ends before.
fn deadline_ns(start_ns: u64, duration_ns: u64) -> u64 {
    start_ns + duration_ns + (duration_ns as f64 * 0.001).min(GRACE_NS) as u64
}

/// Runs the trial. It starts at the current virtual time.
pub fn run(
    world: &mut World,
    key: RunKey,
    numbering: &mut Numbering,
    trial: &Trial,
    caller: &mut Caller,
) -> Outcome<TrialResult> {
    let ports = world.told();
    check_request::check(trial, &ports)?;
    let asked: Vec<OpenPort> = world.ports.iter().map(|port| port.asked.clone()).collect();
    let asked: Vec<(&OpenPort, bool)> = asked.iter().map(|port| (port, false)).collect();
    let prepared = preparation::prepare(trial, &asked, key, numbering)?;
    let most = preparation::most_numbers(trial, &prepared);
    let Prepared {
        parts,
        lives,
        mut counts,
        outgoing,
    } = prepared;
    let start_ns = world.now_ns();
    let before = Look::at(world);
    let mut outgoing: Vec<Outgoing> = outgoing.into_iter().flatten().collect();
    begin_at(start_ns, trial, &mut outgoing, &mut counts);
    let mut passing = Passing {
        world,
        trial,
        parts: &parts,
        lives: &lives,
        start_ns,
        sending: Some(outgoing),
        reports: Vec::new(),
        counts: &mut counts,
        stopped_early: false,
    };
    let passed = passing.send_and_receive(caller);
    let reports = std::mem::take(&mut passing.reports);
    let stopped_early = passing.stopped_early;
    passed.inspect_err(|_| numbering.pass_most(&most))?;
    numbering.pass(&reports);
    let opened = preparation::settle(&parts, &reports, &mut counts, &mut numbering.esp);
    let counted = Counted {
        opened: &opened,
        parts: &parts,
        reports: &reports,
        counts: &counts,
        ports: &ports,
    };
    let made = Made {
        trial,
        start_ns,
        stopped_early,
    };
    let mut found = result::trial_result(&made, &counted, Vec::new())?;
    before.told(&Look::at(world), &mut found);
    Ok(found)
}

/// Sets the times of the start and the end in all streams and their counts.
fn begin_at(start_ns: u64, trial: &Trial, outgoing: &mut [Outgoing], counts: &mut [PortCount]) {
    let duration_ns = (trial.duration_s * 1e9) as u64;
    for stream in outgoing {
        stream.schedule.begin_at(start_ns);
        stream.until_ns = match stream.schedule.planned() {
            Some(_) => deadline_ns(start_ns, duration_ns),
            None => start_ns + duration_ns,
        };
    }
    for stream in counts.iter_mut().flat_map(|count| &mut count.streams) {
        stream.begin_at(start_ns);
    }
}

/// The counts of links and gateways at one moment: for each port, the counts of its gateway and the errors of its link;
/// and the errors of each link between guests.
struct Look {
    ports: Vec<([u64; COUNTS], [u64; 3])>,
    between: Vec<[u64; 3]>,
}

impl Look {
    fn at(world: &World) -> Self {
        Look {
            ports: world.ports.iter().map(|port| port.link.counts()).collect(),
            between: world.between.iter().map(Memory::errors).collect(),
        }
    }

    /// Writes the differences between these counts and later ones to the result.
    fn told(&self, later: &Look, result: &mut TrialResult) {
        for (port, (before, after)) in result.ports.iter_mut().zip(self.ports.iter().zip(&later.ports)) {
            port.link = Some(moved(before, after));
        }
        let between = self.between.iter().zip(&later.between);
        result.between = between.map(|(before, after)| erred(before, after)).collect();
    }
}

fn erred(before: &[u64; 3], after: &[u64; 3]) -> LinkErrors {
    LinkErrors {
        lost: after[0] - before[0],
        damaged: after[1] - before[1],
        late: after[2] - before[2],
    }
}

fn moved(before: &([u64; COUNTS], [u64; 3]), after: &([u64; COUNTS], [u64; 3])) -> LinkCounts {
    let bus = |at: usize| after.0[at] - before.0[at];
    LinkCounts {
        errors: erred(&before.1, &after.1),
        port_read: bus(0),
        port_written: bus(1),
        port_frame_read: bus(2),
        port_frame_written: bus(3),
        sec_read: bus(4),
        sec_written: bus(5),
        sec_descriptors: bus(6),
    }
}

/// A trial while virtual time passes.
struct Passing<'a> {
    world: &'a mut World,
    trial: &'a Trial,
    parts: &'a [Part],
    lives: &'a [Arc<Live>],
    start_ns: u64,
    /// The streams and noise that are sent; None after the end of sending, when `reports` is complete.
    sending: Option<Vec<Outgoing>>,
    reports: Vec<SendReport>,
    counts: &'a mut [PortCount],
    stopped_early: bool,
}

impl Passing<'_> {
    /// Lets time pass, step by step, until the wait for the residue is over.
    fn send_and_receive(&mut self, caller: &mut Caller) -> Outcome<()> {
        let mut moments = self.trial.moments_s.iter().peekable();
        let mut next_progress_ns = monotonic_ns() + PROGRESS_NS;
        loop {
            while !self.stopped_early && moments.next_if(|&&at_s| self.has_come(at_s)).is_some() {
                self.stand(caller)?;
            }
            self.step(caller.asked_to_stop)?;
            if monotonic_ns() >= next_progress_ns {
                next_progress_ns += PROGRESS_NS;
                let elapsed_ns = self.world.now_ns() - self.start_ns;
                (caller.emit)(&progress(
                    self.trial,
                    self.lives,
                    elapsed_ns,
                    self.sending.is_some(),
                ));
            }
            if self.sending.is_none() && self.over() {
                return Ok(());
            }
        }
    }

    fn has_come(&self, at_s: f64) -> bool {
        self.world.now_ns() >= self.start_ns + (at_s * 1e9) as u64
    }

    /// Stands still at a moment, and carries out commands until the trial may continue.
    fn stand(&mut self, caller: &mut Caller) -> Outcome<()> {
        let now_ns = self.world.now_ns();
        let id = self.trial.id.clone();
        (caller.emit)(&Event::Moment { id, now_ns });
        loop {
            let answer = match (caller.next_command)() {
                Some(Ok(Command::Continue)) => return Ok(()),
                Some(Ok(Command::Stop)) | None => {
                    self.stopped_early = true;
                    return Ok(());
                }
                Some(Ok(Command::Console(asked))) => console_command::ask(self, &asked, caller.asked_to_stop),
                Some(Ok(_)) => Err(Failure::new(
                    "a trial stands still at a moment",
                    "send {\"cmd\":\"console\",…}, or {\"cmd\":\"continue\"}",
                )),
                Some(Err(failure)) => Err(failure),
            };
            (caller.emit)(&answer.unwrap_or_else(|failure| Event::Error {
                message: failure.message,
                hint: failure.hint,
            }));
        }
    }

    /// Sends the frames that leave by all ports before `before_ns`.
    fn send_before(&mut self, before_ns: u64, streams: &mut [Outgoing]) -> Outcome<()> {
        for port in &mut self.world.ports {
            let leaving: Vec<usize> = (0..self.parts.len())
                .filter(|&position| self.parts[position].from == port.told.name)
                .collect();
            send(&mut port.link, streams, &leaving, before_ns)?;
        }
        Ok(())
    }

    /// Returns whether the wait for the residue is over.
    fn over(&self) -> bool {
        let last_tx_ns = self.reports.iter().map(|report| report.last_tx_ns).max();
        let last_tx_ns = last_tx_ns.unwrap_or(self.start_ns);
        self.stopped_early || residue_over(self.trial, self.lives, self.world.now_ns(), last_tx_ns)
    }
}

impl Passage for Passing<'_> {
    fn world(&mut self) -> &mut World {
        self.world
    }

    /// Lets a step of time pass: sends the frames that leave in it, and counts the frames that arrive.
    fn step(&mut self, asked_to_stop: &mut dyn FnMut() -> bool) -> Outcome<()> {
        let end_ns = self.world.now_ns() + STEP_NS;
        if let Some(mut streams) = self.sending.take() {
            self.send_before(end_ns, &mut streams)?;
            // Sending ends before later arrivals are judged, so that arrivals after the last departure can be counted.
            if self.stopped_early || streams.iter().all(|stream| stream.over(end_ns)) {
                self.reports = streams.into_iter().map(Outgoing::close).collect();
            } else {
                self.sending = Some(streams);
            }
        }
        let counts = &mut *self.counts;
        let whole = self.world.step(asked_to_stop, &mut |port, arrived| {
            counts[port].count(&RxFrame::whole(&arrived.bytes, arrived.at_ns));
        })?;
        for count in counts {
            count.publish();
        }
        self.stopped_early |= !whole || asked_to_stop();
        Ok(())
    }
}

/// Sends the frames that leave by a port before `before_ns` and before the end of their stream, each when it is due and
/// the link is free.
fn send(link: &mut Link, streams: &mut [Outgoing], leaving: &[usize], before_ns: u64) -> Outcome<()> {
    loop {
        let next = leaving
            .iter()
            .filter_map(|&position| {
                let stream = &streams[position];
                let at_ns = stream.schedule.next_ns().max(link.free_ns());
                (!stream.over(at_ns)).then_some((at_ns, stream.schedule.sent(), position))
            })
            .min();
        let Some((at_ns, _, position)) = next.filter(|&(at_ns, ..)| at_ns < before_ns) else {
            return Ok(());
        };
        let stream = &mut streams[position];
        let frame = stream.make(at_ns);
        let busy_ns = link.busy_ns(frame.len());
        link.send(at_ns, frame)?;
        if !stream.schedule.is_paced() {
            // The time spent sending frames back to back includes the last one's time on the wire.
            stream.report.interval_ns = busy_ns as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fates::Errors;
    use crate::protocol::sample::{association, stream};
    use crate::virtual_time::memory;

    /// Opens two ports at links whose gateways have left.
    fn deserted() -> World {
        let path =
            |name: &str| std::env::temp_dir().join(format!("esplink-{}-left-{name}", std::process::id()));
        let open = |name: &str| -> OpenPort {
            memory::create(&path(name), 50_000, STEP_NS, 8, Errors::default()).unwrap();
            drop(Link::attach(&path(name), 1).unwrap());
            serde_json::from_value(serde_json::json!({"name": name, "link": path(name)})).unwrap()
        };
        let world = World::open(&["west", "east"].map(open)).unwrap();
        for name in ["west", "east"] {
            std::fs::remove_file(path(name)).unwrap();
        }
        world
    }

    /// A trial that fails while frames leave has used its numbers: neither test frames nor ESP packets of the next trial
    /// have them again.
    #[test]
    fn a_trial_that_fails_has_used_its_numbers() {
        let sa = association("aes128gcm16", 0x1000);
        let mut sealed = stream(4, &[84]);
        sealed.burst_frames = Some(50);
        sealed.seal = vec![sa.clone()];
        let empty = serde_json::json!({"id": "t", "duration_s": 1.0, "streams": []});
        let trial = Trial {
            streams: vec![sealed],
            ..serde_json::from_value(empty).unwrap()
        };
        let mut caller = Caller {
            emit: &mut |_| {},
            asked_to_stop: &mut || false,
            next_command: &mut || None,
        };
        let (mut world, mut numbering) = (deserted(), Numbering::default());
        let result = run(&mut world, RunKey::new(1, 2), &mut numbering, &trial, &mut caller);
        let failure = result.err().unwrap();
        assert!(failure.message.contains("left it"), "{failure}");
        assert_eq!((numbering.next_sequence, numbering.esp.next(&sa)), (51, 51));
    }
}
