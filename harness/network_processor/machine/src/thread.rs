// SPDX-License-Identifier: Apache-2.0
//! A hardware thread: its registers, its signals, and when it can go on.

use crate::addresses::{SIGNALS, STACK, TRANSFER_REGISTERS};

/// One of an engine's threads.
pub struct Thread {
    pub registers: [u32; 32],
    pub pc: u32,
    /// The words that were read from shared memory.
    pub came: [u32; TRANSFER_REGISTERS],
    /// The words to write there.
    pub goes: [u32; TRANSFER_REGISTERS],
    /// The time, for each signal, at which all references with it are done.
    pub signals: [u64; SIGNALS],
    /// The cycle in which it can run; None: it has ended.
    pub ready: Option<u64>,
    pub stack: Vec<u8>,
}

impl Thread {
    /// A thread that begins at an address with these arguments in a0, a1 …
    pub fn new(entry: u32, arguments: &[u32], stack: u32) -> Self {
        let mut registers = [0; 32];
        registers[2] = STACK + stack;
        registers[10..10 + arguments.len()].copy_from_slice(arguments);
        Self {
            registers,
            pc: entry,
            came: [0; TRANSFER_REGISTERS],
            goes: [0; TRANSFER_REGISTERS],
            signals: [0; SIGNALS],
            ready: Some(0),
            stack: vec![0; stack as usize],
        }
    }

    /// Set a register; register 0 stays 0.
    pub fn set(&mut self, register: u8, value: u32) {
        if register != 0 {
            self.registers[register as usize] = value;
        }
    }

    /// The value of a register.
    pub fn get(&self, register: u8) -> u32 {
        self.registers[register as usize]
    }
}
