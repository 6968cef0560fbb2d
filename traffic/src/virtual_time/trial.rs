// SPDX-License-Identifier: Apache-2.0
//! One trial in virtual time: no threads and no clock but the links'; every departure and arrival is exact.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::monotonic_ns;
use crate::esp::Numbers;
use crate::failure::Outcome;
use crate::frame::RunKey;
use crate::port::RxFrame;
use crate::preparation::{self, Prepared};
use crate::protocol::{self, Event, OpenPort, TrialResult};
use crate::request;
use crate::result::{self, Counted};
use crate::sender::{Live, Outgoing, SendReport};
use crate::virtual_time::link::Link;
use crate::virtual_time::world::{STEP_NS, World};
use crate::watch::{PROGRESS_NS, residue_over};

/// Frames that are late at the deadline may still leave for 0.1 % of the duration, at most 1 ms. Nothing stalls a
/// sender here: one that is late asks more of its link than that carries.
const GRACE_NS: f64 = 1_000_000.0;

/// Frames that are late then are not sent any more.
fn deadline_ns(start_ns: u64, duration_ns: u64) -> u64 {
    start_ns + duration_ns + (duration_ns as f64 * 0.001).min(GRACE_NS) as u64
}

/// Runs the trial from where virtual time stands. `emit` takes progress; `asked_to_stop` is polled.
pub fn run(
    world: &mut World,
    key: RunKey,
    next_sequence: &mut u64,
    numbers: &mut Numbers,
    trial: &protocol::Trial,
    emit: &mut dyn FnMut(&Event),
    asked_to_stop: &mut dyn FnMut() -> bool,
) -> Outcome<TrialResult> {
    let told = world.told();
    request::check(trial, &told)?;
    let duration_ns = (trial.duration_s * 1e9) as u64;
    let asked: Vec<OpenPort> = world.ports.iter().map(|port| port.asked.clone()).collect();
    let asked: Vec<(&OpenPort, bool)> = asked.iter().map(|port| (port, false)).collect();
    let Prepared {
        parts,
        lives,
        mut counts,
        outgoing,
    } = preparation::prepare(trial, &asked, key, *next_sequence, numbers)?;
    let mut outgoing: Vec<Outgoing> = outgoing.into_iter().flatten().collect();
    let start_ns = world.now_ns();
    let deadline_ns = deadline_ns(start_ns, duration_ns);
    for stream in &mut outgoing {
        stream.schedule.begin_at(start_ns);
    }
    for stream in counts.iter_mut().flat_map(|count| &mut count.streams) {
        stream.begin_at(start_ns);
    }
    let leaving: Vec<Vec<usize>> = told
        .iter()
        .map(|port| {
            (0..parts.len())
                .filter(|&position| parts[position].from == port.name)
                .collect()
        })
        .collect();

    let mut stopped_early = false;
    let mut reports: Option<Vec<SendReport>> = None;
    let mut sending = Some(outgoing);
    let mut next_progress_ns = monotonic_ns() + PROGRESS_NS;
    loop {
        let end_ns = world.now_ns() + STEP_NS;
        if let Some(streams) = &mut sending {
            let before_ns = end_ns.min(deadline_ns);
            for (port, leaving) in world.ports.iter_mut().zip(&leaving) {
                send(&mut port.link, streams, leaving, before_ns)?;
            }
        }
        // Known before anything that arrives later is judged: it tells what came after the last frame had left.
        let over = |streams: &Vec<Outgoing>| end_ns >= deadline_ns || streams.iter().all(Outgoing::finished);
        if let Some(streams) = sending.take_if(|streams| over(streams) || stopped_early) {
            reports = Some(streams.into_iter().map(Outgoing::close).collect());
        }
        let whole = world.step(asked_to_stop, &mut |port, arrived| {
            counts[port].count(&RxFrame {
                bytes: &arrived.bytes,
                wire_length: arrived.bytes.len(),
                at_ns: arrived.at_ns,
                checksum_pending: false,
                vlan_tagged: false,
            });
        })?;
        for count in &counts {
            count.publish();
        }
        stopped_early |= !whole || asked_to_stop();
        if monotonic_ns() >= next_progress_ns {
            next_progress_ns += PROGRESS_NS;
            emit(&progress(trial, &lives, world.now_ns() - start_ns));
        }
        let Some(reports) = &reports else { continue };
        let last_tx_ns = reports.iter().map(|report| report.last_tx_ns).max();
        if stopped_early || residue_over(trial, &lives, world.now_ns(), last_tx_ns.unwrap_or(start_ns)) {
            break;
        }
    }
    let reports = reports.unwrap_or_default();
    *next_sequence += reports.iter().map(|report| report.sent).max().unwrap_or(0) + 1;
    let opened = preparation::settle(&parts, &reports, &mut counts, numbers);
    let counted = Counted {
        opened: &opened,
        parts: &parts,
        reports: &reports,
        counts: &counts,
        ports: &told,
    };
    result::trial_result(trial, &counted, start_ns, stopped_early, Vec::new())
}

/// Sends what leaves from a port before that time, each frame when it is due and the wire is free.
fn send(link: &mut Link, streams: &mut [Outgoing], leaving: &[usize], before_ns: u64) -> Outcome<()> {
    loop {
        let next = leaving
            .iter()
            .filter(|&&position| !streams[position].finished())
            .map(|&position| {
                let stream = &streams[position];
                (
                    stream.schedule.next_ns().max(link.free_ns()),
                    stream.schedule.sent(),
                    position,
                )
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
            // Of frames back to back, the last one's time on the wire is of the time spent sending.
            stream.report.interval_ns = busy_ns as f64;
        }
    }
}

fn progress(trial: &protocol::Trial, lives: &[Arc<Live>], elapsed_ns: u64) -> Event {
    let sum = |of: fn(&Live) -> &AtomicU64| -> u64 {
        lives.iter().map(|live| of(live).load(Ordering::Relaxed)).sum()
    };
    Event::Progress {
        id: trial.id.clone(),
        elapsed_s: elapsed_ns as f64 / 1e9,
        tx_frames: sum(|live| &live.sent),
        rx_frames: sum(|live| &live.arrived),
    }
}
