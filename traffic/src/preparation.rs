// SPDX-License-Identifier: Apache-2.0
//! What a trial needs before its first frame leaves: templates, schedules and counters for all its streams.

use std::sync::Arc;

use crate::esp::Numbers;
use crate::esp::opening::Opening;
use crate::esp::sealing::{Sealer, Sealing};
use crate::failure::Outcome;
use crate::frame::{RunKey, Template};
use crate::frames::Frames;
use crate::lanes::{self, Part};
use crate::noise::RawFrames;
use crate::protocol::{EspCounts, OpenPort, Trial};
use crate::receiver::{PortCount, StreamCount};
use crate::sender::{Live, Outgoing, SendReport};
use crate::verify::Expected;

/// Frames per second that a flood has sequence numbers for.
const FLOOD_FPS: f64 = 20e6;

pub struct Prepared {
    pub parts: Vec<Part>,
    /// One for each part that is no noise.
    pub lives: Vec<Arc<Live>>,
    /// One for each port.
    pub counts: Vec<PortCount>,
    /// One for each part.
    pub outgoing: Vec<Option<Outgoing>>,
}

/// The parts of the trial that arrive at a port.
pub fn arriving<'a>(parts: &'a [Part], port: &'a str) -> impl Iterator<Item = usize> + 'a {
    (0..parts.len()).filter(move |&position| parts[position].goes_to(port))
}

/// How many sequence numbers a part can use.
fn most_frames(part: &Part, trial: &Trial) -> u64 {
    let flood = || (FLOOD_FPS * trial.duration_s).ceil() as u64;
    part.schedule.planned().unwrap_or_else(flood)
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
    let mut frames = Vec::new();
    for part in &parts {
        frames.push(match &part.stream {
            Some(stream) => {
                let template = Template::new(stream, key)?;
                match Sealer::of(stream, &template, numbers, most_frames(part, trial))? {
                    None => Frames::Test(template),
                    Some(sealer) => {
                        let sealing = Sealing::new(sealer, &template);
                        Frames::Sealed(template, Box::new(sealing))
                    }
                }
            }
            None => Frames::Raw(RawFrames::new(&trial.noise[part.of])?),
        });
    }
    let lives: Vec<Arc<Live>> = parts.iter().map(|_| Arc::default()).collect();
    let mut counts = Vec::new();
    for (port, _) in ports {
        let mut count = PortCount::default();
        let streams = arriving(&parts, &port.name).filter_map(|position| parts[position].stream.as_ref());
        count.opening = Opening::of(streams, numbers)?.map(Box::new);
        for position in arriving(&parts, &port.name) {
            let part = &parts[position];
            let (Some(stream), Some(template)) = (&part.stream, frames[position].template()) else {
                continue;
            };
            count.expect(
                part.of,
                Expected::new(stream, template, key, first_sequence, most_frames(part, trial)),
                StreamCount::new(0, duration_ns, stream.tag_at_s, lives[position].clone())?,
                stream.gaps_over_s,
            );
        }
        counts.push(count);
    }
    let mut outgoing = Vec::new();
    for ((part, frames), live) in parts.iter().zip(frames).zip(&lives) {
        let mut stream = Outgoing::new(frames, part.schedule.clone(), first_sequence, live.clone(), 0)?;
        stream.tag_at_s = part.stream.as_ref().and_then(|stream| stream.tag_at_s);
        outgoing.push(Some(stream));
    }
    let counted = parts.iter().zip(lives).filter(|(part, _)| part.stream.is_some());
    let lives = counted.map(|(_, live)| live).collect();
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
        let sas = part.stream.iter().flat_map(|stream| &stream.seal);
        for (sa, &last) in sas.zip(&report.last_esp_numbers) {
            numbers.sealed(sa, last);
        }
    }
    let close = |count: &mut PortCount| count.opening.as_mut().map(|opening| opening.close(numbers));
    counts.iter_mut().map(close).collect()
}
