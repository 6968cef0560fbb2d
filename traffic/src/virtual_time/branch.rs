// SPDX-License-Identifier: Apache-2.0
//! Branches: guests that stand are copied as they are, with their links, so that each trial begins in the same state.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::failure::{Failure, Outcome};
use crate::port::virtual_time::LinkPort;
use crate::virtual_time::memory::{ATTACHED, Memory};
use crate::virtual_time::world::World;

/// A guest of a few hundred MB is copied in less.
const PATIENCE: Duration = Duration::from_secs(60);
const NAP: Duration = Duration::from_millis(1);

/// Copies of link files; gone as soon as all who use them have them open.
struct Copies(Vec<PathBuf>);

impl Copies {
    fn of(&mut self, path: &Path, name: &str) -> PathBuf {
        let mut copy = path.as_os_str().to_owned();
        copy.push(name);
        self.0.push(copy.clone().into());
        copy.into()
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn order(trunk: &World, number: u32, name: &str) -> Outcome<()> {
    for port in &trunk.ports {
        port.link.order(number, name)?;
    }
    // One guest may be at several of them: it finds the orders of all.
    for port in &trunk.ports {
        port.link.ring();
    }
    Ok(())
}

/// Makes a branch of all that stands here; `trunk` stays as it is. `others`: the links between guests.
pub fn branch(trunk: &mut World, number: u32, others: &[PathBuf]) -> Outcome<World> {
    let name = format!(".{number}");
    let (stand, fork) = (2 * number - 1, 2 * number);
    order(trunk, stand, &name)?;
    for port in &trunk.ports {
        port.link.stands(stand)?;
    }
    let mut copies = Copies(Vec::new());
    let mut between = Vec::new();
    for path in others {
        let copy = copies.of(path, &name);
        between.push((path, Memory::open(path)?.copy(path, &copy)?));
    }
    let mut ports = Vec::new();
    for port in &trunk.ports {
        let copy = copies.of(port.link.path(), &name);
        ports.push(LinkPort {
            asked: port.asked.clone(),
            told: port.told.clone(),
            mac: port.mac,
            link: port.link.copy(&copy)?,
            console: port.console.clone(),
            answers: port.answers.clone(),
        });
    }
    order(trunk, fork, &name)?;
    for port in &ports {
        port.link.met()?;
    }
    let mut waited = Duration::ZERO;
    for (path, memory) in &between {
        use std::sync::atomic::Ordering::Acquire;
        while (0..2).any(|end| memory.end(end).state.load(Acquire) != ATTACHED) {
            if waited > PATIENCE {
                return Err(Failure::new(
                    format!(
                        "link {}: not both of its guests came to the branch",
                        path.display()
                    ),
                    "their logs say why",
                ));
            }
            std::thread::sleep(NAP);
            waited += NAP;
        }
    }
    Ok(trunk.with(ports))
}
