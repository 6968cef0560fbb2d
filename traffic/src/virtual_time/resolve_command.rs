// SPDX-License-Identifier: Apache-2.0
//! The command `resolve` in virtual time: resolves the MAC address of a gateway.

use crate::failure::{Failure, Outcome};
use crate::frame::neighbours::{self, Heard};
use crate::frame::octets::{Mac, show_mac};
use crate::protocol::{Event, Resolve};
use crate::virtual_time::world::World;

const RETRY_NS: u64 = 500_000_000;

/// Resolves the MAC address of a gateway, and answers requests for `asked.address` from now on.
pub fn resolve(
    world: &mut World,
    asked: &Resolve,
    tags: &[u8],
    asked_to_stop: &mut dyn FnMut() -> bool,
) -> Outcome<Event> {
    let port = world.port(&asked.port)?;
    let ask = neighbours::ask(world.ports[port].mac, asked.address, asked.gateway, tags)?;
    // The port answers from the start, because a gateway may resolve the tester's address before it answers.
    world.answer_for(port, asked.address, tags);
    let end_ns = world.now_ns() + (asked.timeout_s * 1e9) as u64;
    let mut next_ns = world.now_ns();
    let mut others = Heard::default();
    while world.now_ns() < end_ns {
        let now_ns = world.now_ns();
        if now_ns >= next_ns {
            world.ports[port].link.send(now_ns, &ask)?;
            next_ns = now_ns + RETRY_NS;
        }
        let mut found: Option<Mac> = None;
        let whole = world.step(asked_to_stop, &mut |at, arrived| {
            if let Some(heard) = neighbours::read(&arrived.bytes).filter(|_| at == port) {
                if !heard.question && heard.target == asked.gateway {
                    found = Some(heard.mac);
                } else {
                    others.note(&heard);
                }
            }
        })?;
        if let Some(mac) = found {
            return Ok(Event::Resolved {
                port: asked.port.clone(),
                gateway: asked.gateway,
                mac: show_mac(&mac),
            });
        }
        if !whole {
            return Err(Failure::new("stopped while a gateway was looked for", ""));
        }
    }
    Err(others.failure(
        &world.ports[port].told,
        asked.address,
        asked.gateway,
        asked.timeout_s,
    ))
}
