// SPDX-License-Identifier: Apache-2.0
//! The parts of a trial: its streams and noise, divided among several sending CPUs.

use crate::protocol::{OpenPort, RateStep, Stream, Trial};
use crate::send::pace::{Rate, Schedule};

/// The part of a stream, or of noise, that one CPU sends. A part of a stream is a stream with its own id and its own
/// sequence numbers, because frames of two CPUs may overtake each other.
#[derive(Debug)]
pub struct Part {
    pub from: String,
    /// The part as a stream; None for noise.
    pub stream: Option<Stream>,
    /// Index of the stream or noise in the trial that it belongs to.
    pub of: usize,
    pub schedule: Schedule,
    pub cpu: Option<usize>,
    /// Number among the parts of that stream or noise, from 0.
    pub number: u64,
}

impl Part {
    /// Returns whether it is a part of a stream that arrives at this port.
    pub fn goes_to(&self, port: &str) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.to == port)
    }
}

/// Makes the schedule of a whole stream or noise; its start is 0 for now.
fn schedule(rate: Option<f64>, steps: &[RateStep], burst: Option<u64>, duration_s: f64) -> Schedule {
    let whole = match rate {
        None => Schedule::flood(0),
        Some(fps) => {
            let later = steps.iter().map(|step| Rate {
                from_s: step.at_s,
                fps: step.rate_fps,
            });
            let rates: Vec<Rate> = [Rate { from_s: 0.0, fps }].into_iter().chain(later).collect();
            Schedule::at_rates(0, &rates, duration_s)
        }
    };
    match burst {
        Some(frames) => whole.burst(frames),
        None => whole,
    }
}

/// Divides each stream and noise of the trial into one part for each sending CPU of its port. `ports` has, for each
/// port, whether several CPUs may send (only by XDP). The start of all schedules is 0 for now. Parts without frames are
/// left out.
pub fn parts(trial: &Trial, ports: &[(&OpenPort, bool)]) -> Vec<Part> {
    let streams = trial.streams.iter().map(|stream| stream.id);
    let mut used: Vec<u16> = streams.chain(trial.noise.iter().map(|noise| noise.id)).collect();
    let mut found = Vec::new();
    for (of, stream) in trial.streams.iter().enumerate() {
        let whole = schedule(
            stream.rate_fps,
            &stream.steps,
            stream.burst_frames,
            trial.duration_s,
        )
        .with_leeway((stream.leeway * trial.duration_s * 1e9) as u64);
        for mut part in cut(of, &stream.from, &whole, ports) {
            let mut sent = stream.clone();
            if part.number > 0 {
                let free = (0..=u16::MAX).rev().find(|id| !used.contains(id));
                sent.id = free.unwrap_or(stream.id);
                used.push(sent.id);
            }
            part.stream = Some(sent);
            found.push(part);
        }
    }
    for (of, noise) in trial.noise.iter().enumerate() {
        let whole = schedule(noise.rate_fps, &noise.steps, noise.burst_frames, trial.duration_s);
        found.extend(cut(of, &noise.from, &whole, ports));
    }
    found.retain(|part| part.schedule.planned() != Some(0));
    found
}

/// Makes one part for each CPU that sends from the port. The caller sets `stream` of the parts of a stream.
fn cut(of: usize, from: &str, whole: &Schedule, ports: &[(&OpenPort, bool)]) -> Vec<Part> {
    let cpus: Vec<Option<usize>> = match ports.iter().find(|(port, _)| port.name == from) {
        Some((port, true)) if !port.tx_cpus.is_empty() => port.tx_cpus.iter().copied().map(Some).collect(),
        Some((port, _)) => vec![port.tx_cpus.first().copied()],
        None => vec![None],
    };
    let parts = cpus.len() as u64;
    // If each part were postponed by its own pauses, the parts would no longer take turns. So only one part has leeway.
    let leeway_ns = if parts == 1 { whole.leeway_ns() } else { 0 };
    let numbered = (0..).zip(cpus);
    numbered
        .map(|(number, cpu)| Part {
            from: from.into(),
            stream: None,
            of,
            schedule: whole.clone().every(number, parts).with_leeway(leeway_ns),
            cpu,
            number,
        })
        .collect()
}

/// Returns the indexes of the parts of the trial that arrive at a port.
pub fn arriving<'a>(parts: &'a [Part], port: &'a str) -> impl Iterator<Item = usize> + 'a {
    (0..parts.len()).filter(move |&position| parts[position].goes_to(port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::sample::stream;

    fn trial(streams: Vec<Stream>) -> Trial {
        serde_json::from_value(serde_json::json!({"id": "t", "duration_s": 1.0, "streams": []}))
            .map(|trial| Trial { streams, ..trial })
            .unwrap()
    }

    fn port(name: &str, cpus: &[usize]) -> OpenPort {
        serde_json::from_value(serde_json::json!({"name": name, "interface": "x", "tx_cpus": cpus})).unwrap()
    }

    /// Parts have their own ids, and their frames add up; a port that allows only one sending CPU uses its first.
    #[test]
    fn parts_add_up() {
        let mut asked = vec![stream(4, &[64]), stream(4, &[64])];
        asked[0].id = u16::MAX;
        asked[0].rate_fps = Some(9.0);
        asked[1].from = "east".into();
        asked[1].burst_frames = Some(2);
        let (west, east) = (port("west", &[1, 2, 3]), port("east", &[4, 5, 6]));
        let found = parts(&trial(asked.clone()), &[(&west, true), (&east, true)]);
        let of = |of| found.iter().filter(move |part| part.of == of);
        assert_eq!(
            of(0).map(|part| part.cpu).collect::<Vec<_>>(),
            [Some(1), Some(2), Some(3)]
        );
        let planned = |which| of(which).map(|part| part.schedule.planned()).collect::<Vec<_>>();
        assert_eq!(planned(0), [Some(3), Some(3), Some(3)]);
        assert_eq!(planned(1), [Some(1), Some(1)]);
        let mut ids: Vec<u16> = found
            .iter()
            .map(|part| part.stream.as_ref().unwrap().id)
            .collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), found.len());
        let alone = parts(&trial(asked), &[(&west, false), (&port("east", &[]), true)]);
        assert_eq!(
            alone.iter().map(|part| part.cpu).collect::<Vec<_>>(),
            [Some(1), None]
        );
    }
}
