// SPDX-License-Identifier: Apache-2.0
//! A program's instructions, decoded once for all engines, and what of them was run.

use crate::instruction::{Op, decode};
use crate::mix::{Kind, Mix};

/// The instruction store; all engines hold the same.
pub struct Code {
    pub ops: Vec<Op>,
}

impl Code {
    /// Decode all; an error where the store has not the room, or a word is no instruction.
    pub fn new(words: &[u32], room: usize) -> Result<Self, String> {
        if words.len() > room {
            return Err(format!(
                "{} instructions, an engine's store has room for {room}",
                words.len()
            ));
        }
        let ops = words
            .iter()
            .enumerate()
            .map(|(at, &word)| decode(word, 4 * at as u32))
            .collect::<Result<_, _>>()?;
        Ok(Self { ops })
    }

    /// Count the instructions by kind. is_local: those that reached local memory or the stack.
    pub fn mix(&self, is_local: &[bool]) -> Mix {
        let mut mix = Mix::default();
        for (op, &is_local) in self.ops.iter().zip(is_local) {
            mix.add(if is_local { Kind::Local } else { op.kind() }, 1);
        }
        mix
    }
}
