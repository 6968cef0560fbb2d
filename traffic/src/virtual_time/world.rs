// SPDX-License-Identifier: Apache-2.0
//! The generator's ports in virtual time. It is the clock by which the gateways run, and stands between commands.

use std::collections::VecDeque;
use std::net::IpAddr;

use crate::failure::{Failure, Outcome};
use crate::frame::neighbours::{self, Neighbour};
use crate::protocol::{OpenPort, OpenedPort};
use crate::virtual_time::console::Console;
use crate::virtual_time::link::{Arrived, Waited};
use crate::virtual_time::link_port::STEP_NS;
use crate::virtual_time::link_port::{self, LinkPort};
use crate::virtual_time::memory::Memory;

/// All links of the generator, at one virtual time.
pub struct World {
    pub ports: Vec<LinkPort>,
    /// Links between guests, of a branch: what they count is told with that of the ports.
    pub between: Vec<Memory>,
    /// Name of the branch, which the links between guests add to their paths; empty: it is none.
    pub name: String,
    now_ns: u64,
}

impl World {
    pub fn open(asked: &[OpenPort]) -> Outcome<Self> {
        let mut ports = Vec::new();
        for (position, port) in asked.iter().enumerate() {
            ports.push(link_port::open(port, position)?);
        }
        Ok(World {
            ports,
            between: Vec::new(),
            name: String::new(),
            now_ns: 0,
        })
    }

    /// Makes another world at the same time, whose links have this added to their paths.
    pub fn with(&self, ports: Vec<LinkPort>, between: Vec<Memory>, name: &str) -> Self {
        World {
            ports,
            between,
            name: format!("{}{name}", self.name),
            now_ns: self.now_ns,
        }
    }

    pub fn told(&self) -> Vec<OpenedPort> {
        self.ports.iter().map(|port| port.told.clone()).collect()
    }

    /// Returns the time before which everything has happened, at both ends of every link.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Returns the position of a port.
    pub fn port(&self, name: &str) -> Outcome<usize> {
        self.ports
            .iter()
            .position(|port| port.told.name == name)
            .ok_or_else(|| Failure::new(format!("port '{name}' is not open"), "open it first"))
    }

    pub fn console(&mut self, port: usize) -> &mut Console {
        &mut self.ports[port].console
    }

    pub fn type_in(&mut self, port: usize, bytes: &[u8]) -> Outcome<()> {
        let now_ns = self.now_ns;
        self.ports[port].link.type_in(now_ns, bytes)
    }

    /// Lets the time of a step pass; the frames that the ports send in it are in their rings already. Frames that arrive
    /// by its end go to `each`, port by port. Returns false if the caller asked to stop: some may be missing then.
    pub fn step(
        &mut self,
        asked_to_stop: &mut dyn FnMut() -> bool,
        each: &mut dyn FnMut(usize, &Arrived),
    ) -> Outcome<bool> {
        let to_ns = self.now_ns + STEP_NS;
        for port in &self.ports {
            port.link.publish(to_ns);
        }
        self.now_ns = to_ns; // as was promised, whatever comes of it
        for port in &mut self.ports {
            if port.link.wait(to_ns, asked_to_stop)? == Waited::Stopped {
                return Ok(false);
            }
        }
        for (position, port) in self.ports.iter_mut().enumerate() {
            while let Some(printed) = due(&mut port.link.printed, to_ns) {
                port.console.take(&printed.bytes);
            }
            while let Some(arrived) = due(&mut port.link.frames, to_ns) {
                each(position, &arrived);
                if let Some(frame) = answer(port, &arrived) {
                    port.link.send(to_ns, &frame)?;
                }
            }
        }
        Ok(true)
    }

    /// Lets the port answer for the address from now on.
    pub fn answer_for(&mut self, port: usize, address: IpAddr, tags: &[u8]) {
        let here = &mut self.ports[port].answers;
        if !here.iter().any(|(known, _)| *known == address) {
            here.push((address, tags.to_vec()));
        }
    }
}

/// Takes the next that has arrived by then.
fn due(waiting: &mut VecDeque<Arrived>, by_ns: u64) -> Option<Arrived> {
    let next_ns = waiting.front()?.at_ns;
    (next_ns <= by_ns).then(|| waiting.pop_front()).flatten()
}

/// Makes the port's answer to a question for one of its addresses.
fn answer(port: &LinkPort, arrived: &Arrived) -> Option<Vec<u8>> {
    let asked: Neighbour = neighbours::read(&arrived.bytes).filter(|heard| heard.question)?;
    let (_, tags) = port
        .answers
        .iter()
        .find(|(address, _)| *address == asked.target)?;
    Some(neighbours::tagged(neighbours::answer(port.mac, &asked)?, tags))
}
