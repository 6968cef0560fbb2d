// SPDX-License-Identifier: Apache-2.0
//! The open ports and what is done with them: the state behind the commands.

use std::time::Duration;

use crate::clock::monotonic_ns;
use crate::esp::Numbers;
use crate::failure::{Failure, Outcome};
use crate::frame::{RunKey, show_mac};
use crate::neighbours::{self, Responder};
use crate::port::{self, Port};
use crate::protocol::{self, Event};
use crate::trial;
use crate::virtual_time::{self, world::World};
use crate::xdp::sender::LiveSender;

#[derive(Default)]
pub struct Session {
    responders: Vec<(String, Responder)>,
    ports: Vec<Port>,
    /// In place of `ports` where they are links.
    world: Option<World>,
    /// Where branches begin: the world that was opened, and its next numbers.
    trunk: Option<(World, u64, Numbers)>,
    branches: u32,
    key: Option<RunKey>,
    watch_cpus: Vec<usize>,
    next_sequence: u64,
    numbers: Numbers,
    idle: Vec<LiveSender>,
}

fn random() -> Outcome<u64> {
    let mut bytes = [0u8; 8];
    // SAFETY: the buffer is valid for its length.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if got == 8 {
        Ok(u64::from_ne_bytes(bytes))
    } else {
        Err(Failure::last_os("getrandom"))
    }
}

impl Session {
    pub fn open(&mut self, open: &protocol::Open) -> Outcome<Event> {
        self.close();
        if open.ports.is_empty() {
            return Err(Failure::new("ports is empty", "give at least one port"));
        }
        for (position, asked) in open.ports.iter().enumerate() {
            if open.ports[..position]
                .iter()
                .any(|other| other.name == asked.name)
            {
                return Err(Failure::new(
                    format!("two ports are named {}", asked.name),
                    "give each port its own name",
                ));
            }
        }
        if open.ports.iter().any(|asked| asked.link.is_some()) {
            let world = World::open(&open.ports)?;
            let told = world.told();
            // The same in each run: nobody else is on these links.
            self.key = Some(RunKey::new(open.run_key.unwrap_or(0), 0));
            self.next_sequence = 0;
            // SAs have the same keys in each run there, and begin anew.
            self.numbers = Numbers::default();
            self.world = Some(world);
            return Ok(Event::Opened { ports: told });
        }
        let run_key = open.run_key.map_or_else(random, Ok)?;
        let mut ports = Vec::new();
        for asked in &open.ports {
            ports.push(port::open::open(asked)?);
        }
        // The instant keeps frames of a killed predecessor with the same run key apart from ours.
        self.key = Some(RunKey::new(run_key, monotonic_ns()));
        self.ports = ports;
        self.watch_cpus.clone_from(&open.watch_cpus);
        self.watch_cpus.sort_unstable();
        self.watch_cpus.dedup();
        Ok(Event::Opened {
            ports: self.ports.iter().map(|port| port.told.clone()).collect(),
        })
    }

    pub fn close(&mut self) {
        self.responders.clear();
        self.ports.clear();
        self.world = None;
        self.trunk = None;
        self.branches = 0;
        self.idle.clear();
        self.key = None;
    }

    pub fn resolve(
        &mut self,
        asked: &protocol::Resolve,
        asked_to_stop: &mut dyn FnMut() -> bool,
    ) -> Outcome<Event> {
        if !(0.0..=600.0).contains(&asked.timeout_s) {
            return Err(Failure::new(
                format!("timeout_s is {}, expected 0 to 600", asked.timeout_s),
                "",
            ));
        }
        let tags = neighbours::tags_of(&asked.tags)?;
        if let Some(world) = &mut self.world {
            return virtual_time::neighbours::resolve(world, asked, &tags, asked_to_stop);
        }
        let Some(port) = self.ports.iter().find(|port| port.told.name == asked.port) else {
            return Err(Failure::new(
                format!("port '{}' is not open", asked.port),
                "open it first",
            ));
        };
        // Answer first: a gateway that wants to know us before it answers gets what it needs.
        if !self
            .responders
            .iter()
            .any(|(name, here)| *name == asked.port && here.address == asked.address)
        {
            self.responders.push((
                asked.port.clone(),
                Responder::start(port, asked.address, tags.clone())?,
            ));
        }
        let mac = neighbours::resolve(
            port,
            asked.address,
            asked.gateway,
            &tags,
            Duration::from_secs_f64(asked.timeout_s),
        )?;
        Ok(Event::Resolved {
            port: asked.port.clone(),
            gateway: asked.gateway,
            mac: show_mac(&mac),
        })
    }

    pub fn console(
        &mut self,
        asked: &protocol::Console,
        asked_to_stop: &mut dyn FnMut() -> bool,
    ) -> Outcome<Event> {
        match &mut self.world {
            Some(world) => virtual_time::console::ask(world, asked, asked_to_stop),
            None => Err(Failure::new(
                "only guests in virtual time have a console here",
                "open ports with \"link\"",
            )),
        }
    }

    pub fn branch(&mut self, asked: &protocol::Branch) -> Outcome<Event> {
        if self.trunk.is_none() {
            let numbers = &self.numbers;
            self.trunk = self
                .world
                .take()
                .map(|world| (world, self.next_sequence, numbers.clone()));
        }
        let Some((trunk, next_sequence, numbers)) = &mut self.trunk else {
            return Err(Failure::new(
                "only guests in virtual time have branches",
                "open ports with \"link\"",
            ));
        };
        self.world = None; // the guests of the branch before end
        self.branches += 1;
        let world = virtual_time::branch::branch(trunk, self.branches, &asked.others)?;
        let now_ns = world.now_ns();
        self.next_sequence = *next_sequence;
        self.numbers = numbers.clone();
        self.world = Some(world);
        Ok(Event::Branched { now_ns })
    }

    pub fn trial(
        &mut self,
        asked: &protocol::Trial,
        emit: &mut dyn FnMut(&Event),
        asked_to_stop: &mut dyn FnMut() -> bool,
    ) -> Outcome<protocol::TrialResult> {
        let Some(key) = self.key else {
            return Err(Failure::new("no port is open", "send {\"cmd\":\"open\",…} first"));
        };
        if let Some(world) = &mut self.world {
            let next_sequence = &mut self.next_sequence;
            let numbers = &mut self.numbers;
            return virtual_time::trial::run(world, key, next_sequence, numbers, asked, emit, asked_to_stop);
        }
        let bench = trial::Bench {
            ports: &mut self.ports,
            key,
            watch_cpus: &self.watch_cpus,
            idle: &mut self.idle,
            next_sequence: &mut self.next_sequence,
            numbers: &mut self.numbers,
        };
        trial::run(bench, asked, emit, asked_to_stop)
    }
}
