// SPDX-License-Identifier: Apache-2.0
//! The generator's ports in virtual time. Their time is the clock by which the gateways run; it stands still between
//! commands.

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

/// All ports of the generator in virtual time, which have the same current time.
pub struct World {
    pub ports: Vec<LinkPort>,
    /// The links between guests of a branch. Their counts are reported with those of the ports.
    pub between: Vec<Memory>,
    /// Name of the branch, which is added to the paths of the links between guests; empty: the guests that were opened.
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

    /// Makes a branch of this world at the same time, with these ports and links. `name` is added to this world's name.
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

    /// Returns the current virtual time: everything before it has happened, at both ends of every link.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Returns the position of a port. Fails if it is not open.
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

    /// Lets STEP_NS of time pass. The frames that the ports send in this step must be in their rings already. `each`
    /// gets the frames that arrive until its end, port by port. Returns false if the caller asked to stop; then frames
    /// of this step have not been read.
    pub fn step(
        &mut self,
        asked_to_stop: &mut dyn FnMut() -> bool,
        each: &mut dyn FnMut(usize, &Arrived),
    ) -> Outcome<bool> {
        let to_ns = self.now_ns + STEP_NS;
        for port in &self.ports {
            port.link.promise(to_ns);
        }
        // Only now: a gateway that is woken by the first promise may need the others as well, and would sleep again at once.
        for port in &self.ports {
            port.link.wake();
        }
        self.now_ns = to_ns; // the gateways run up to this time, even if the wait for them fails
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

    /// Lets the port answer requests for the address from now on.
    pub fn answer_for(&mut self, port: usize, address: IpAddr, tags: &[u8]) {
        let here = &mut self.ports[port].answers;
        if !here.iter().any(|(known, _)| *known == address) {
            here.push((address, tags.to_vec()));
        }
    }
}

/// Takes the next entry if it has arrived by `by_ns`.
fn due(waiting: &mut VecDeque<Arrived>, by_ns: u64) -> Option<Arrived> {
    let next_ns = waiting.front()?.at_ns;
    (next_ns <= by_ns).then(|| waiting.pop_front()).flatten()
}

/// Makes the port's answer if the frame is a question for one of its addresses.
fn answer(port: &LinkPort, arrived: &Arrived) -> Option<Vec<u8>> {
    let asked: Neighbour = neighbours::read(&arrived.bytes).filter(|heard| heard.question)?;
    let (_, tags) = port
        .answers
        .iter()
        .find(|(address, _)| *address == asked.target)?;
    Some(neighbours::tagged(neighbours::answer(port.mac, &asked)?, tags))
}
