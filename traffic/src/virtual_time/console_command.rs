// SPDX-License-Identifier: Apache-2.0
//! The command `console`: types a line into a guest's console at an exact virtual time, so that its effects are the
//! same in each run, and waits for the answer.

use crate::failure::{Failure, Outcome};
use crate::protocol::{self, Event};
use crate::virtual_time::world::World;

/// A way to let virtual time pass step by step: alone (`World`), or with the sending and counting of a trial.
pub trait Passage {
    fn world(&mut self) -> &mut World;
    /// Lets STEP_NS of virtual time pass.
    fn step(&mut self, asked_to_stop: &mut dyn FnMut() -> bool) -> Outcome<()>;
}

impl Passage for World {
    fn world(&mut self) -> &mut World {
        self
    }

    fn step(&mut self, asked_to_stop: &mut dyn FnMut() -> bool) -> Outcome<()> {
        World::step(self, asked_to_stop, &mut |_, _| {}).map(|_whole| ())
    }
}

/// Longest text without a line end, bytes. Only a guest that does not work correctly prints more.
const LONGEST_LINE: usize = 1 << 20;

/// Types the line, and lets virtual time pass until the guest prints a line that begins with `asked.until`. Fails if
/// none is printed in time, or if the caller asked to stop.
pub fn ask(
    passage: &mut dyn Passage,
    asked: &protocol::Console,
    asked_to_stop: &mut dyn FnMut() -> bool,
) -> Outcome<Event> {
    let world = passage.world();
    let port = world.port(&asked.port)?;
    if !(0.0..=86_400.0).contains(&asked.timeout_s) {
        return Err(Failure::new(
            format!("timeout_s is {}, expected 0 to 86400", asked.timeout_s),
            "",
        ));
    }
    let end_ns = world.now_ns() + (asked.timeout_s * 1e9) as u64;
    if let Some(line) = &asked.line {
        world.type_in(port, format!("{line}\n").as_bytes())?;
    }
    let mut lines = Vec::new();
    loop {
        let world = passage.world();
        while let Some(line) = world.console(port).line() {
            let last = line.starts_with(&asked.until);
            lines.push(line);
            if last {
                return Ok(Event::Console {
                    port: asked.port.clone(),
                    now_ns: world.now_ns(),
                    lines,
                });
            }
        }
        let mut shown = lines.iter().rev().take(5).rev().cloned().collect::<Vec<_>>();
        let rest = world.console(port).rest();
        if world.now_ns() >= end_ns || rest.len() > LONGEST_LINE {
            shown.push(rest.chars().take(200).collect());
            return Err(Failure::new(
                format!(
                    "port {}: no line that begins with '{}' within {} s of virtual time; the console: {}",
                    asked.port,
                    asked.until,
                    asked.timeout_s,
                    shown.join(" / ")
                ),
                "the guest's console tells what it did instead",
            ));
        }
        if asked_to_stop() {
            return Err(Failure::new("stopped while a guest was asked", ""));
        }
        passage.step(asked_to_stop)?;
    }
}
