// SPDX-License-Identifier: Apache-2.0
//! Sending lanes: one for each sending CPU, with the ports and the streams that it serves.

use crate::host::netns::Netns;
use crate::port::Tx;
use crate::protocol::OpenPort;
use crate::send::live_sender::LivePort;
use crate::send::outgoing::Outgoing;
use crate::trial::parts::Part;
use crate::wire::FrameSender;

/// The work of one sending thread: the ports of a CPU, and the streams that leave by them.
pub struct Lane<'a> {
    pub cpu: Option<usize>,
    pub way: Way<'a>,
    pub streams: Vec<Outgoing>,
    /// The index, among the trial's parts, of each of `streams`.
    pub positions: Vec<usize>,
}

/// The path on which a lane sends.
pub enum Way<'a> {
    /// One sender for each port of the lane.
    Packets(Vec<&'a mut dyn FrameSender>),
    /// Live frames, with the port of each of the lane's streams.
    Live(Vec<LivePort<'a>>),
}

/// Distributes the parts of the trial over the lanes, one for each sending CPU and path.
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

/// Finds or makes the lane of this CPU and path. Without a CPU, each call makes a new lane.
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
