// SPDX-License-Identifier: Apache-2.0
//! The caller of a trial: receives events of its progress, and may stop it.

use crate::failure::{Failure, Outcome};
use crate::protocol::{Command, Event};

/// The callbacks of a caller. `emit` takes events of progress. `asked_to_stop` is polled, and returns whether the trial
/// is to stop. `next_command` waits for a command while a trial stands still at a moment; it returns None if no command
/// will come any more.
pub struct Caller<'a> {
    pub emit: &'a mut dyn FnMut(&Event),
    pub asked_to_stop: &'a mut dyn FnMut() -> bool,
    pub next_command: &'a mut dyn FnMut() -> Option<Outcome<Command>>,
}

impl Caller<'_> {
    /// Does work on many packets before or after the trial. `work` gets a closure that takes the number of packets done
    /// and the number of all packets, and returns whether to continue. Fails if the caller asked to stop; `doing` names
    /// the work in the message.
    pub fn while_packets<T>(
        &mut self,
        id: &str,
        doing: &str,
        work: impl FnOnce(&mut dyn FnMut(u64, u64) -> bool) -> T,
    ) -> Outcome<T> {
        let mut stopped = false;
        let done = work(&mut |done, of| {
            stopped |= (self.asked_to_stop)();
            (self.emit)(&Event::Crypto {
                id: id.into(),
                done,
                of,
            });
            !stopped
        });
        if stopped {
            return Err(Failure::new(
                format!("trial {id}: stopped while its packets were {doing}"),
                "",
            ));
        }
        Ok(done)
    }
}
