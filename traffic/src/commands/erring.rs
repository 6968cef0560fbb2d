// SPDX-License-Identifier: Apache-2.0
//! One direction of a wire that errs: each frame is lost, dropped as its FCS would be wrong, delayed, or passed on.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::commands::cli;
use crate::commands::taps::{End, HEADER, LONGEST};
use crate::fates::{Chance, Errors, Fate, seed_of};
use crate::frame::octets::SHORTEST;
use crate::host::clock::monotonic_ns;
use crate::protocol::LinkErrors;

/// Number of frames taken at most before those that wait are looked at again.
const AT_ONCE: usize = 64;
/// Number of frames that may wait for their time. Beyond it frames stay in the queue that leads here, as they do if the
/// way out is full: a wire loses none but those whose fate it is.
const MOST: usize = 100_000;

/// One direction; its numbers are those of this end of the link of that number (`seed_of`).
pub struct Way {
    errors: Errors,
    delay_ns: u64,
    link: u64,
    end: usize,
    drawn: Mutex<Drawn>,
}

/// The source of the fates, if there are any now, and what they were since it began.
#[derive(Default)]
struct Drawn {
    chance: Option<Chance>,
    errors: LinkErrors,
}

/// Frames by the time at which they are to go on, and by number: those of one time keep their order.
type Waiting = BTreeMap<(u64, u64), Vec<u8>>;

impl Way {
    pub fn new(arguments: &cli::Wire, end: usize) -> Self {
        Way {
            errors: arguments.errors.errors(),
            delay_ns: arguments.delay_ns,
            link: arguments.link,
            end,
            drawn: Mutex::default(),
        }
    }

    fn drawn(&self) -> MutexGuard<'_, Drawn> {
        self.drawn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins anew from a seed, 0 for no errors; returns what happened since this was last done.
    pub fn begin(&self, seed: u64) -> LinkErrors {
        let chance = (seed != 0).then(|| Chance::of_end(seed_of(seed, self.link), self.end));
        let before = std::mem::replace(
            &mut *self.drawn(),
            Drawn {
                chance,
                errors: LinkErrors::default(),
            },
        );
        before.errors
    }

    /// Returns how much later a frame of so many bytes goes on; None: it never does.
    fn delay_of(&self, length: usize) -> Option<u64> {
        let mut drawn = self.drawn();
        let fate = match &mut drawn.chance {
            Some(chance) => chance.fate(&self.errors, length.max(SHORTEST)),
            None => Fate::NONE,
        };
        match fate {
            Fate::Lost => {
                drawn.errors.lost += 1;
                None
            }
            Fate::Comes { damaged, late_ns } => {
                drawn.errors.damaged += u64::from(damaged);
                drawn.errors.late += u64::from(late_ns > 0);
                // There is no FCS here: the wire drops what the port at its end would drop.
                (!damaged).then_some(self.delay_ns + late_ns)
            }
        }
    }

    /// Carries frames until an end goes away.
    pub fn carry(&self, from: &End, to: &End) -> std::io::Error {
        let mut buffer = vec![0u8; LONGEST];
        let mut waiting = Waiting::new();
        let mut number = 0;
        loop {
            let due_in_ns = match give_due(&mut waiting, to) {
                Ok(due_in_ns) => due_in_ns,
                Err(error) => return error,
            };
            if waiting.len() >= MOST {
                std::thread::sleep(std::time::Duration::from_nanos(due_in_ns.unwrap_or(0)));
                continue;
            }
            from.wait(libc::POLLIN, due_in_ns);
            for _ in 0..AT_ONCE {
                let length = match from.take(&mut buffer) {
                    Ok(length) => length,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) => return error,
                };
                let frame = &buffer[..HEADER + length];
                match self.delay_of(length) {
                    None => {}
                    Some(0) => {
                        if let Err(error) = give(to, frame) {
                            return error;
                        }
                    }
                    Some(delay_ns) => {
                        number += 1;
                        waiting.insert((monotonic_ns() + delay_ns, number), frame.to_vec());
                    }
                }
            }
        }
    }
}

/// Gives all frames whose time has come; returns in how long the next one's will come (ns).
fn give_due(waiting: &mut Waiting, to: &End) -> std::io::Result<Option<u64>> {
    while let Some(first) = waiting.first_entry() {
        let (due_ns, _) = *first.key();
        let now_ns = monotonic_ns();
        if due_ns > now_ns {
            return Ok(Some(due_ns - now_ns));
        }
        give(to, &first.remove())?;
    }
    Ok(None)
}

/// Gives a frame, and waits while the other side is full.
fn give(to: &End, frame: &[u8]) -> std::io::Result<()> {
    loop {
        match to.give(frame) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => to.wait(libc::POLLOUT, None),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Lets waits of this thread, and of those that it starts, end when they should, not up to 50 µs later.
pub fn wake_exactly() {
    // SAFETY: the call gets numbers only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}
