// SPDX-License-Identifier: Apache-2.0
//! Who sends what when: a trial's streams, cut into parts for several CPUs, and one lane of sending for each CPU.

use crate::pace::{Rate, Schedule};
use crate::port::netns::Netns;
use crate::port::{FrameSender, Tx};
use crate::protocol::{OpenPort, RateStep, Stream, Trial};
use crate::sender::Outgoing;
use crate::xdp::sender::LivePort;

/// What one CPU sends of a stream of the trial: a stream with an id, and so with sequence numbers, of its own,
/// since frames of two CPUs overtake each other.
#[derive(Debug)]
pub struct Part {
    pub from: String,
    /// None: noise.
    pub stream: Option<Stream>,
    /// Which stream, or which noise, of the trial it is of.
    pub of: usize,
    pub schedule: Schedule,
    pub cpu: Option<usize>,
    /// Its number among the parts of that stream.
    pub number: u64,
}

impl Part {
    /// Whether it arrives at this port.
    pub fn goes_to(&self, port: &str) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.to == port)
    }
}

/// When the frames of a whole stream, or noise, are due.
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

/// The trial's streams and noise, each cut into as many parts as its port has sending CPUs (only XDP has more than
/// one). Times begin at 0 for now.
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
        );
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

/// One part for each CPU that sends from the port, as yet noise.
fn cut(of: usize, from: &str, whole: &Schedule, ports: &[(&OpenPort, bool)]) -> Vec<Part> {
    let cpus: Vec<Option<usize>> = match ports.iter().find(|(port, _)| port.name == from) {
        Some((port, true)) if !port.tx_cpus.is_empty() => port.tx_cpus.iter().copied().map(Some).collect(),
        Some((port, _)) => vec![port.tx_cpus.first().copied()],
        None => vec![None],
    };
    let parts = cpus.len() as u64;
    let numbered = (0..).zip(cpus);
    numbered
        .map(|(number, cpu)| Part {
            from: from.into(),
            stream: None,
            of,
            schedule: whole.clone().every(number, parts),
            cpu,
            number,
        })
        .collect()
}

/// One thread's worth of sending: the ports of a CPU and the streams that leave from them.
pub struct Lane<'a> {
    pub cpu: Option<usize>,
    pub way: Way<'a>,
    pub streams: Vec<Outgoing>,
    /// Which part each of `streams` is.
    pub positions: Vec<usize>,
}

pub enum Way<'a> {
    Packets(Vec<&'a mut dyn FrameSender>),
    /// The port of each stream.
    Live(Vec<LivePort<'a>>),
}

/// The parts of the trial, spread over one lane for each sending CPU.
pub fn lanes<'a>(
    ports: Vec<(&'a OpenPort, u32, &'a Netns, &'a mut Tx)>,
    parts: &[Part],
    outgoing: &mut [Option<Outgoing>],
) -> Vec<Lane<'a>> {
    let mut lanes: Vec<Lane> = Vec::new();
    for (asked, index, netns, tx) in ports {
        let mut leaving: Vec<usize> = (0..parts.len())
            .filter(|&position| parts[position].from == asked.name)
            .collect();
        match tx {
            Tx::Packets(sender) => {
                let Some(&first) = leaving.first() else { continue };
                let lane = lane_of(&mut lanes, parts[first].cpu, false);
                if let Way::Packets(senders) = &mut lane.way {
                    senders.push(sender.as_mut());
                    let port = senders.len() - 1;
                    for position in leaving {
                        if let Some(mut stream) = outgoing[position].take() {
                            stream.port = port;
                            lane.streams.push(stream);
                            lane.positions.push(position);
                        }
                    }
                }
            }
            Tx::Live(link) => {
                for position in leaving.drain(..) {
                    let lane = lane_of(&mut lanes, parts[position].cpu, true);
                    if let (Way::Live(ports), Some(stream)) = (&mut lane.way, outgoing[position].take()) {
                        ports.push(LivePort {
                            index,
                            netns,
                            link: &*link,
                        });
                        lane.streams.push(stream);
                        lane.positions.push(position);
                    }
                }
            }
        }
    }
    lanes
}

/// The lane of this CPU and kind; without a CPU every port has a lane of its own.
fn lane_of<'b, 'a>(lanes: &'b mut Vec<Lane<'a>>, cpu: Option<usize>, live: bool) -> &'b mut Lane<'a> {
    let shared = lanes
        .iter()
        .position(|lane| cpu.is_some() && lane.cpu == cpu && matches!(lane.way, Way::Live(_)) == live);
    let place = shared.unwrap_or_else(|| {
        lanes.push(Lane {
            cpu,
            way: if live {
                Way::Live(Vec::new())
            } else {
                Way::Packets(Vec::new())
            },
            streams: Vec::new(),
            positions: Vec::new(),
        });
        lanes.len() - 1
    });
    &mut lanes[place]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::tests::stream;

    fn trial(streams: Vec<Stream>) -> Trial {
        serde_json::from_value(serde_json::json!({"id": "t", "duration_s": 1.0, "streams": []}))
            .map(|trial| Trial { streams, ..trial })
            .unwrap()
    }

    fn port(name: &str, cpus: &[usize]) -> OpenPort {
        serde_json::from_value(serde_json::json!({"name": name, "interface": "x", "tx_cpus": cpus})).unwrap()
    }

    /// Parts have ids of their own, and rates and frames that add up; a port that cannot sends by its first CPU.
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
