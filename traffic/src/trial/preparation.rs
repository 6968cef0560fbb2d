// SPDX-License-Identifier: Apache-2.0
//! The preparation of a trial: templates, schedules and counters for all its streams.

use std::sync::Arc;

use crate::count::live::Live;
use crate::esp::numbers::Numbers;
use crate::esp::opening::Opening;
use crate::esp::sealer::Sealer;
use crate::esp::sealing::Sealing;
use crate::failure::Outcome;
use crate::frame::noise::RawFrames;
use crate::frame::template::Template;
use crate::frame::test_header::RunKey;
use crate::protocol::{EspCounts, OpenPort, Trial};
use crate::receive::port_count::PortCount;
use crate::receive::stream_count::StreamCount;
use crate::receive::verify::Expected;
use crate::send::frame_source::Frames;
use crate::send::outgoing::Outgoing;
use crate::send::report::SendReport;
use crate::trial::numbering::{Most, Numbering};
use crate::trial::parts::{self, Part, arriving};

/// Highest rate of a flood, frames per second: it has sequence numbers for this rate.
const FLOOD_FPS: f64 = 20e6;

/// A trial that is ready to start.
pub struct Prepared {
    pub parts: Vec<Part>,
    /// One for each part of a stream.
    pub lives: Vec<Arc<Live>>,
    /// One for each port.
    pub counts: Vec<PortCount>,
    /// One for each part. It becomes None when a sending thread takes it.
    pub outgoing: Vec<Option<Outgoing>>,
}

/// Returns the largest number of sequence numbers that a part can use.
fn most_frames(part: &Part, trial: &Trial) -> u64 {
    let flood = || (FLOOD_FPS * trial.duration_s).ceil() as u64;
    part.schedule.planned().unwrap_or_else(flood)
}

/// Prepares a trial. `ports` has the open ports, and whether several CPUs may send from each. The start is 0 for now.
pub fn prepare(
    trial: &Trial,
    ports: &[(&OpenPort, bool)],
    key: RunKey,
    numbering: &Numbering,
) -> Outcome<Prepared> {
    let parts = parts::parts(trial, ports);
    let frames = sources(trial, &parts, key, &numbering.esp)?;
    let lives: Vec<Arc<Live>> = parts.iter().map(|_| Arc::default()).collect();
    let mut counts = Vec::new();
    for (port, _) in ports {
        let mut count = PortCount::default();
        let streams = arriving(&parts, &port.name).filter_map(|position| parts[position].stream.as_ref());
        count.opening = Opening::of(streams, &numbering.esp)?.map(Box::new);
        for position in arriving(&parts, &port.name) {
            let part = &parts[position];
            let (Some(stream), Some(template)) = (&part.stream, frames[position].template()) else {
                continue;
            };
            let most = most_frames(part, trial);
            let duration_ns = (trial.duration_s * 1e9) as u64;
            count.expect(
                part.of,
                Expected::new(stream, template, key, numbering.next_sequence, most),
                StreamCount::new(0, duration_ns, stream.tag_at_s, lives[position].clone())?,
                stream.gaps_over_s,
            );
        }
        counts.push(count);
    }
    let mut outgoing = Vec::new();
    for ((part, frames), live) in parts.iter().zip(frames).zip(&lives) {
        let schedule = part.schedule.clone();
        let mut stream = Outgoing::new(frames, schedule, numbering.next_sequence, live.clone(), 0)?;
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

/// Returns the highest numbers that a prepared trial can use.
pub fn most_numbers(trial: &Trial, prepared: &Prepared) -> Most {
    let mut most = Most {
        frames: 0,
        esp: Vec::new(),
    };
    for (part, outgoing) in prepared.parts.iter().zip(&prepared.outgoing) {
        let frames = most_frames(part, trial);
        most.frames = most.frames.max(frames);
        if let (Some(stream), Some(Frames::Sealed(_, sealing))) =
            (&part.stream, outgoing.as_ref().map(|outgoing| &outgoing.frames))
        {
            let last = sealing.sealer.last_numbers(frames);
            most.esp.extend(stream.seal.iter().cloned().zip(last));
        }
    }
    most
}

/// Makes the source of the frames of each part.
fn sources(trial: &Trial, parts: &[Part], key: RunKey, numbers: &Numbers) -> Outcome<Vec<Frames>> {
    let mut found = Vec::new();
    for part in parts {
        let Some(stream) = &part.stream else {
            found.push(Frames::Raw(RawFrames::new(&trial.noise[part.of], part.number)?));
            continue;
        };
        let template = Template::new(stream, key)?;
        found.push(
            match Sealer::of(stream, &template, numbers, most_frames(part, trial))? {
                None => Frames::Test(template),
                Some(sealer) => {
                    let sealing = Sealing::new(sealer, &template);
                    Frames::Sealed(template, Box::new(sealing))
                }
            },
        );
    }
    Ok(found)
}

/// Ends the use of the SAs after the trial: notes their sequence numbers in `numbers`, and returns the counts of each
/// port's SAs.
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
