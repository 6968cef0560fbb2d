// SPDX-License-Identifier: Apache-2.0
//! The session: the open ports, and what the commands of a controller do with them.

use std::time::Duration;

use crate::failure::{Failure, Outcome};
use crate::frame::neighbours;
use crate::frame::octets::show_mac;
use crate::frame::test_header::RunKey;
use crate::host::clock::monotonic_ns;
use crate::port::address_resolution::{self, Responder};
use crate::port::{Port, open_port};
use crate::protocol::{self, Event};
use crate::real_time::real_trial::{self, Bench};
use crate::send::live_sender::LiveSender;
use crate::trial::caller::Caller;
use crate::trial::numbering::Numbering;
use crate::virtual_time::world::World;
use crate::virtual_time::{branch, console_command, resolve_command, virtual_trial};

/// The state that is kept from one command to the next.
#[derive(Default)]
pub struct Session {
    responders: Vec<(String, Responder)>,
    ports: Vec<Port>,
    /// The ports in virtual time, which are links; `ports` is empty then.
    world: Option<World>,
    /// The world and its sequence numbers at the first command `branch` with `anew`, from which each trunk is copied.
    root: Option<(World, Numbering)>,
    /// The world and its sequence numbers from which each branch is copied.
    trunk: Option<(World, Numbering)>,
    branches: u32,
    key: Option<RunKey>,
    watch_cpus: Vec<usize>,
    numbering: Numbering,
    idle: Vec<LiveSender>,
}

fn random() -> Outcome<u64> {
    let mut bytes = [0u8; 8];
    // SAFETY: `bytes` is writable for its length.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if got == 8 {
        Ok(u64::from_ne_bytes(bytes))
    } else {
        Err(Failure::last_os("getrandom"))
    }
}

impl Session {
    /// Opens ports, and closes those that were open.
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
            // The key is the same in each run, because no other run uses these links.
            self.key = Some(RunKey::new(open.run_key.unwrap_or(0), 0));
            // SAs have the same keys in each run in virtual time, and their sequence numbers start again.
            self.numbering = Numbering::default();
            self.world = Some(world);
            return Ok(Event::Opened { ports: told });
        }
        let run_key = open.run_key.map_or_else(random, Ok)?;
        let mut ports = Vec::new();
        for asked in &open.ports {
            ports.push(open_port::open(asked)?);
        }
        // The time of this call makes the key differ from that of a killed generator with the same run key.
        self.key = Some(RunKey::new(run_key, monotonic_ns()));
        self.ports = ports;
        self.watch_cpus.clone_from(&open.watch_cpus);
        self.watch_cpus.sort_unstable();
        self.watch_cpus.dedup();
        Ok(Event::Opened {
            ports: self.ports.iter().map(|port| port.told.clone()).collect(),
        })
    }

    /// Closes all ports.
    pub fn close(&mut self) {
        self.responders.clear();
        self.ports.clear();
        self.world = None;
        self.trunk = None;
        self.root = None;
        self.branches = 0;
        self.idle.clear();
        self.key = None;
    }

    /// Resolves the MAC address of a gateway, and answers requests for `asked.address` from now on.
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
            return resolve_command::resolve(world, asked, &tags, asked_to_stop);
        }
        let Some(port) = self.ports.iter().find(|port| port.told.name == asked.port) else {
            return Err(Failure::new(
                format!("port '{}' is not open", asked.port),
                "open it first",
            ));
        };
        // The responder starts first, because a gateway may resolve the tester's address before it answers.
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
        let mac = address_resolution::resolve(
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

    /// Types a line into a guest's console, and waits for the guest's answer.
    pub fn console(
        &mut self,
        asked: &protocol::Console,
        asked_to_stop: &mut dyn FnMut() -> bool,
    ) -> Outcome<Event> {
        match &mut self.world {
            Some(world) => console_command::ask(world, asked, asked_to_stop),
            None => Err(Failure::new(
                "only guests in virtual time have a console here",
                "open ports with \"link\"",
            )),
        }
    }

    /// Replaces the running guests by copies of those of the trunk or, with `asked.anew`, of the root.
    pub fn branch(&mut self, asked: &protocol::Branch) -> Outcome<Event> {
        let begin = if asked.anew {
            &mut self.root
        } else {
            &mut self.trunk
        };
        if begin.is_none() {
            let numbering = &self.numbering;
            *begin = self.world.take().map(|world| (world, numbering.clone()));
        }
        self.world = None; // this ends the guests of the previous branch
        if asked.anew {
            self.trunk = None;
        }
        let begin = if asked.anew {
            &mut self.root
        } else {
            &mut self.trunk
        };
        let Some((trunk, numbering)) = begin else {
            return Err(Failure::new(
                "only guests in virtual time have branches",
                "open ports with \"link\"",
            ));
        };
        self.branches += 1;
        let world = branch::branch(trunk, self.branches, &asked.others, asked.seed)?;
        let now_ns = world.now_ns();
        self.numbering = numbering.clone();
        self.world = Some(world);
        Ok(Event::Branched { now_ns })
    }

    /// Runs a trial.
    pub fn trial(&mut self, asked: &protocol::Trial, caller: &mut Caller) -> Outcome<protocol::TrialResult> {
        let Some(key) = self.key else {
            return Err(Failure::new("no port is open", "send {\"cmd\":\"open\",…} first"));
        };
        if let Some(world) = &mut self.world {
            return virtual_trial::run(world, key, &mut self.numbering, asked, caller);
        }
        if !asked.moments_s.is_empty() {
            return Err(Failure::new(
                "only a trial in virtual time stands still at moments",
                "leave moments_s out, or open ports with \"link\"",
            ));
        }
        let bench = Bench {
            ports: &mut self.ports,
            key,
            watch_cpus: &self.watch_cpus,
            idle: &mut self.idle,
            numbering: &mut self.numbering,
        };
        real_trial::run(bench, asked, caller)
    }
}
