// SPDX-License-Identifier: Apache-2.0
//! What a trial needs before its first frame leaves: templates, schedules and counters for all its streams.

use std::sync::Arc;

use crate::esp::Numbers;
use crate::esp::opening::Opening;
use crate::esp::sealing::{Sealer, Sealing};
use crate::failure::Outcome;
use crate::frame::{RunKey, Template};
use crate::lanes::{self, Part};
use crate::pace::Schedule;
use crate::protocol::{EspCounts, OpenPort, Stream, Trial};
use crate::receiver::{PortCount, StreamCount};
use crate::sender::{Live, Outgoing, SendReport};
use crate::verify::Expected;

/// Frames per second that a flood has sequence numbers for.
const FLOOD_FPS: f64 = 20e6;

pub struct Prepared {
    pub parts: Vec<Part>,
    /// One for each part.
    pub lives: Vec<Arc<Live>>,
    /// One for each port.
    pub counts: Vec<PortCount>,
    /// One for each part.
    pub outgoing: Vec<Option<Outgoing>>,
}

/// The parts of the trial that arrive at a port.
pub fn arriving<'a>(parts: &'a [Part], port: &'a str) -> impl Iterator<Item = usize> + 'a {
    (0..parts.len()).filter(move |&position| parts[position].stream.to == port)
}

/// How many sequence numbers a stream can use.
fn most_frames(stream: &Stream, duration_s: f64) -> u64 {
    let paced = || (stream.rate_fps.unwrap_or(FLOOD_FPS) * duration_s).ceil() as u64 + 1;
    stream.burst_frames.unwrap_or_else(paced)
}

/// `ports`: the open ones, and whether several CPUs may send from each. Times begin at 0 for now.
pub fn prepare(
    trial: &Trial,
    ports: &[(&OpenPort, bool)],
    key: RunKey,
    first_sequence: u64,
    numbers: &Numbers,
) -> Outcome<Prepared> {
    let duration_ns = (trial.duration_s * 1e9) as u64;
    let parts = lanes::parts(trial, ports);
    let mut templates = Vec::new();
    for part in &parts {
        templates.push(Template::new(&part.stream, key)?);
    }
    let lives: Vec<Arc<Live>> = parts.iter().map(|_| Arc::default()).collect();
    let mut counts = Vec::new();
    for (port, _) in ports {
        let mut count = PortCount::default();
        let streams = arriving(&parts, &port.name).map(|position| &parts[position].stream);
        count.opening = Opening::of(streams, numbers)?.map(Box::new);
        for position in arriving(&parts, &port.name) {
            let stream = &parts[position].stream;
            let most = most_frames(stream, trial.duration_s);
            count.expected.push(Expected::new(
                stream,
                &templates[position],
                key,
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
        let most = most_frames(&part.stream, trial.duration_s);
        let sealer = Sealer::of(&part.stream, &template, numbers, most)?;
        let sealing = sealer.map(|sealer| Sealing::new(sealer, &template));
        outgoing.push(Some(Outgoing::new(
            template,
            schedule,
            first_sequence,
            sealing,
            live.clone(),
            0,
        )?));
    }
    Ok(Prepared {
        parts,
        lives,
        counts,
        outgoing,
    })
}

/// After the trial: what the SAs of each port say. The numbers that were used are remembered.
pub fn settle(
    parts: &[Part],
    reports: &[SendReport],
    counts: &mut [PortCount],
    numbers: &mut Numbers,
) -> Vec<Option<EspCounts>> {
    for (part, report) in parts.iter().zip(reports) {
        for (sa, &last) in part.stream.seal.iter().zip(&report.last_esp_numbers) {
            numbers.sealed(sa, last);
        }
    }
    let close = |count: &mut PortCount| count.opening.as_mut().map(|opening| opening.close(numbers));
    counts.iter_mut().map(close).collect()
}
