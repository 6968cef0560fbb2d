// SPDX-License-Identifier: Apache-2.0
//! The open ports and what is done with them: the state behind the commands.

use std::time::Duration;

use crate::clock::monotonic_ns;
use crate::failure::{Failure, Outcome};
use crate::frame::{RunKey, show_mac};
use crate::neighbours::{self, Responder};
use crate::port::{self, Port};
use crate::protocol::{self, Event};
use crate::trial;
use crate::xdp::sender::LiveSender;

#[derive(Default)]
pub struct Session {
    responders: Vec<(String, Responder)>,
    ports: Vec<Port>,
    key: Option<RunKey>,
    watch_cpus: Vec<usize>,
    next_sequence: u64,
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
        self.idle.clear();
        self.key = None;
    }

    pub fn resolve(&mut self, asked: &protocol::Resolve) -> Outcome<Event> {
        let Some(port) = self.ports.iter().find(|port| port.told.name == asked.port) else {
            return Err(Failure::new(
                format!("port '{}' is not open", asked.port),
                "open it first",
            ));
        };
        if !(0.0..=600.0).contains(&asked.timeout_s) {
            return Err(Failure::new(
                format!("timeout_s is {}, expected 0 to 600", asked.timeout_s),
                "",
            ));
        }
        let tags = neighbours::tags_of(&asked.tags)?;
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

    pub fn trial(
        &mut self,
        asked: &protocol::Trial,
        emit: &mut dyn FnMut(&Event),
        asked_to_stop: &mut dyn FnMut() -> bool,
    ) -> Outcome<protocol::TrialResult> {
        let Some(key) = self.key else {
            return Err(Failure::new("no port is open", "send {\"cmd\":\"open\",…} first"));
        };
        let bench = trial::Bench {
            ports: &mut self.ports,
            key,
            watch_cpus: &self.watch_cpus,
            idle: &mut self.idle,
            next_sequence: &mut self.next_sequence,
        };
        trial::run(bench, asked, emit, asked_to_stop)
    }
}
