// SPDX-License-Identifier: Apache-2.0
//! A port that is the end of a link in virtual time, in place of an interface.

use std::net::IpAddr;

use crate::failure::{Failure, Outcome};
use crate::frame::octets::{Mac, show_mac};
use crate::protocol::{OpenPort, OpenedPort};
use crate::virtual_time::console::Console;
use crate::virtual_time::link::Link;

/// Length of a step. The generator sends all frames of a step before it reads those that arrive in it, so that the
/// gateways can run for a whole step without waiting. Times of frames do not depend on it; a wait ends at the end of a
/// step.
pub const STEP_NS: u64 = 1_000_000;
/// The generator's end of a link; the gateway has the other end.
const END: usize = 0;
const MTU: u32 = 1500;

/// An open port at a link.
pub struct LinkPort {
    pub asked: OpenPort,
    pub told: OpenedPort,
    pub mac: Mac,
    pub link: Link,
    pub console: Console,
    /// Addresses for which it answers requests, each with the VLAN tags of its answers.
    pub answers: Vec<(IpAddr, Vec<u8>)>,
}

/// Opens a port. Its MAC address contains its position among the open ports.
pub fn open(asked: &OpenPort, position: usize) -> Outcome<LinkPort> {
    let path = asked.link.as_deref().filter(|_| asked.interface.is_empty());
    let Some(path) = path else {
        return Err(Failure::new(
            format!("port {}: one of interface and link is needed", asked.name),
            "\"link\": PATH for virtual time, on all ports; \"interface\": NAME for real ones",
        ));
    };
    let link = Link::attach(path, END)
        .map_err(|failure| Failure::new(format!("port {}: {}", asked.name, failure.message), failure.hint))?;
    if link.step_ns() != STEP_NS {
        return Err(Failure::new(
            format!(
                "port {}: the ends of link {} exchange promises each {} ns, the generator each {STEP_NS}",
                asked.name,
                path.display(),
                link.step_ns()
            ),
            "make the generator's links without --step-ns",
        ));
    }
    let mac = [2, 0, 0, 0, 0, position as u8 + 1];
    let told = OpenedPort {
        name: asked.name.clone(),
        interface: path.display().to_string(),
        driver: "virtual time".into(),
        mac: show_mac(&mac),
        mtu: MTU,
        carrier: true,
        speed_mbps: Some(link.mbps()),
        sender: "virtual time".into(),
        receiver: "virtual time".into(),
        notes: Vec::new(),
    };
    Ok(LinkPort {
        asked: asked.clone(),
        told,
        mac,
        link,
        console: Console::default(),
        answers: Vec::new(),
    })
}
