// SPDX-License-Identifier: Apache-2.0
//! Branches: copies of standing guests and their links, so that each trial begins in the same state.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Acquire;
use std::time::Duration;

use crate::failure::{Failure, Outcome};
use crate::fates::seed_of;
use crate::virtual_time::link_port::LinkPort;
use crate::virtual_time::memory::{ATTACHED, Memory};
use crate::virtual_time::world::World;

/// Longest wait for the copies: a guest of a few hundred MB is copied in less.
const PATIENCE: Duration = Duration::from_secs(60);
const NAP: Duration = Duration::from_millis(1);

/// Copies of link files. They are removed as soon as all who use them have them open.
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

/// Orders all guests to do something.
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

/// Makes a branch of all that stands here; `trunk` stays as it is, and may be a branch itself. `others` are the links between guests. What goes wrong
/// on links that err depends on the seed; 0: nothing does.
pub fn branch(trunk: &mut World, number: u32, others: &[PathBuf], seed: u64) -> Outcome<World> {
    let name = format!(".{number}");
    let (stand, fork) = (2 * number - 1, 2 * number);
    order(trunk, stand, &name)?;
    for port in &trunk.ports {
        port.link.stands(stand)?;
    }
    let mut copies = Copies(Vec::new());
    let mut between = Vec::new();
    let mut links = 0u64;
    let mut next_seed = || {
        links += 1;
        if seed == 0 { 0 } else { seed_of(seed, links) }
    };
    for (position, path) in others.iter().enumerate() {
        let copy = copies.of(path, &format!("{}{name}", trunk.name));
        let copied = match trunk.between.get(position) {
            Some(memory) => memory.copy(path, &copy, next_seed())?,
            None => Memory::open(path)?.copy(path, &copy, next_seed())?,
        };
        between.push((path, copied));
    }
    let mut ports = Vec::new();
    for port in &trunk.ports {
        let copy = copies.of(port.link.path(), &name);
        ports.push(LinkPort {
            asked: port.asked.clone(),
            told: port.told.clone(),
            mac: port.mac,
            link: port.link.copy(&copy, next_seed())?,
            console: port.console.clone(),
            answers: port.answers.clone(),
        });
    }
    order(trunk, fork, &name)?;
    all_come(trunk, &ports, &between)?;
    let between = between.into_iter().map(|(_, memory)| memory).collect();
    Ok(trunk.with(ports, between, &name))
}

/// Waits for the copies of all guests. If one died before it was copied, only the trunk's link can tell.
fn all_come(trunk: &World, ports: &[LinkPort], between: &[(&PathBuf, Memory)]) -> Outcome<()> {
    let lacks_a_guest = |memory: &Memory| (0..2).any(|end| memory.end(end).state.load(Acquire) != ATTACHED);
    let mut waited = Duration::ZERO;
    loop {
        let lonely = ports.iter().find(|port| !port.link.met());
        let lonely = lonely.map(|port| port.link.path()).or_else(|| {
            let found = between.iter().find(|(_, memory)| lacks_a_guest(memory));
            found.map(|(path, _)| path.as_path())
        });
        let Some(path) = lonely else {
            return Ok(());
        };
        for port in &trunk.ports {
            port.link.lives()?;
        }
        if waited > PATIENCE {
            return Err(Failure::new(
                format!(
                    "link {}: not all of its guests came to the branch",
                    path.display()
                ),
                "their logs say why",
            ));
        }
        std::thread::sleep(NAP);
        waited += NAP;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virtual_time::link_port::STEP_NS;
    use crate::virtual_time::memory;
    use std::sync::atomic::Ordering::Release;

    /// The failure comes at once and names the death: it does not wait a minute for the copy.
    #[test]
    fn a_guest_that_dies_before_it_is_copied_is_named() {
        let path = std::env::temp_dir().join(format!("esplink-{}-dies", std::process::id()));
        memory::create(&path, 50_000, STEP_NS, 8, crate::fates::Errors::default()).unwrap();
        let asked = format!(r#"{{"name": "west", "link": "{}"}}"#, path.display());
        let mut trunk = World::open(&[serde_json::from_str(&asked).unwrap()]).unwrap();
        let guest = Memory::open(&path).unwrap();
        let guest = std::thread::spawn(move || {
            assert!(guest.take(1));
            guest.end(1).state.store(ATTACHED, Release);
            loop {
                match guest.end(0).order.load(Acquire) {
                    1 => guest.end(1).order.store(1, Release),
                    2 => return, // its end is free then, as after a kill
                    _ => std::thread::sleep(NAP),
                }
            }
        });
        let failure = branch(&mut trunk, 1, &[], 0).err().unwrap();
        guest.join().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(
            failure.message.contains("at its other end died"),
            "{}",
            failure.message
        );
    }
}
