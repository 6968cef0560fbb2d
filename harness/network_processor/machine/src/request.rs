// SPDX-License-Identifier: Apache-2.0
//! Defines what the machine is asked to run, as JSON: a processor, a program, its tables and its data.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

/// One run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub program: PathBuf,
    pub processor: Processor,
    pub engines: usize,
    /// The threads of each engine.
    pub threads: usize,
    /// Words to be put at a symbol of the program before it begins; symbols that it has not are passed over.
    pub tables: BTreeMap<String, Vec<u32>>,
    /// Words of DRAM: as many for each thread, one thread after the other.
    pub input: Vec<u32>,
    /// The words of DRAM that each thread writes.
    pub output_words: usize,
}

/// The features built into the processor.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processor {
    pub cycles: Cycles,
    /// Bytes of local memory of an engine; 0 without.
    pub local: u32,
    /// Bytes of stack of a thread.
    pub stack: u32,
    /// Instructions that an engine's store holds.
    pub instructions: usize,
    /// References that an engine has handed out and no memory has taken yet.
    pub commands: usize,
    pub scratch: Memory,
    pub sram: Memory,
    pub dram: Memory,
}

/// The cycles that instructions take beside the one of each.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cycles {
    /// Aborted after a branch that is taken, and a jump.
    pub branch: u64,
    /// Aborted when a thread gives way.
    pub swap: u64,
    /// A multiplication, in all.
    pub multiply: u64,
    /// A rotation by a register, in all.
    pub rotate: u64,
}

/// A memory that all engines share.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    pub bytes: u32,
    /// Cycles from a reference of one unit to its signal, if nothing is in its way.
    pub read: u64,
    pub write: u64,
    /// Bytes of a transfer.
    pub unit: u32,
    pub channels: u32,
    /// Bytes after which the next channel begins; 0: all in one.
    pub interleave: u32,
    /// Thousandths of a cycle for which a reference keeps its channel, beside its transfers.
    pub command: u64,
    /// Thousandths of a cycle for each transfer.
    pub transfer: u64,
    /// References that a channel holds and has not begun.
    pub queue: usize,
}
