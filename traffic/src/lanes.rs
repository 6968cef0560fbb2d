// SPDX-License-Identifier: Apache-2.0
//! Who sends what: a trial's streams, cut into parts for several CPUs, and one lane of sending for each CPU.

use crate::port::netns::Netns;
use crate::port::{FrameSender, Tx};
use crate::protocol::{OpenPort, Stream, Trial};
use crate::sender::Outgoing;
use crate::xdp::sender::LivePort;

/// What one CPU sends of a stream of the trial: a stream with an id, and so with sequence numbers, of its own,
/// since frames of two CPUs overtake each other.
#[derive(Debug)]
pub struct Part {
    pub stream: Stream,
    /// Which stream of the trial it is of.
    pub of: usize,
    pub cpu: Option<usize>,
    /// Its number among the parts of that stream, and how many those are.
    pub number: u64,
    pub parts: u64,
}

/// The trial's streams, each cut into as many parts as its port has sending CPUs (only XDP has more than one).
pub fn parts(trial: &Trial, ports: &[(&OpenPort, bool)]) -> Vec<Part> {
    let mut used: Vec<u16> = trial.streams.iter().map(|stream| stream.id).collect();
    let mut found = Vec::new();
    for (of, stream) in trial.streams.iter().enumerate() {
        let from = ports.iter().find(|(port, _)| port.name == stream.from);
        let cpus: Vec<Option<usize>> = match from {
            Some((port, true)) if !port.tx_cpus.is_empty() => {
                port.tx_cpus.iter().copied().map(Some).collect()
            }
            Some((port, _)) => vec![port.tx_cpus.first().copied()],
            None => vec![None],
        };
        let parts = cpus.len() as u64;
        for (number, cpu) in (0..).zip(cpus) {
            let mut part = stream.clone();
            if number > 0 {
                part.id = (0..=u16::MAX)
                    .rev()
                    .find(|id| !used.contains(id))
                    .unwrap_or(stream.id);
                used.push(part.id);
            }
            part.rate_fps = stream.rate_fps.map(|rate| rate / parts as f64);
            part.burst_frames = stream
                .burst_frames
                .map(|frames| (frames + parts - 1 - number) / parts);
            found.push(Part {
                stream: part,
                of,
                cpu,
                number,
                parts,
            });
        }
    }
    found.retain(|part| part.stream.burst_frames != Some(0));
    found
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
            .filter(|&position| parts[position].stream.from == asked.name)
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
        assert!(of(0).all(|part| part.stream.rate_fps == Some(3.0) && part.parts == 3));
        assert_eq!(
            of(1).map(|part| part.stream.burst_frames).collect::<Vec<_>>(),
            [Some(1), Some(1)]
        );
        let mut ids: Vec<u16> = found.iter().map(|part| part.stream.id).collect();
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
