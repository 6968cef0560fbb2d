// SPDX-License-Identifier: Apache-2.0
//! The kinds of instructions that are told apart, and counts of them.

use serde::Serialize;

/// Kinds of instructions, as tables IV and V of the benchmark's paper have them; local is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Addition, logic, shifts by whatever, rotations by a constant, moves from and to transfer registers.
    Simple,
    /// Multiplication, rotation by a register.
    Complex,
    Jump,
    Branch,
    Immediate,
    /// A load from a memory that is shared.
    Load,
    Store,
    /// Local memory and stack, which an engine reaches as it reaches registers.
    Local,
    /// Waiting for signals, the end.
    Other,
}

/// A number for each kind.
#[derive(Clone, Copy, Default, Serialize)]
pub struct Mix {
    pub simple: u64,
    pub complex: u64,
    pub jump: u64,
    pub branch: u64,
    pub immediate: u64,
    pub load: u64,
    pub store: u64,
    pub local: u64,
    pub other: u64,
}

impl Mix {
    /// Add to one kind.
    pub fn add(&mut self, kind: Kind, by: u64) {
        *match kind {
            Kind::Simple => &mut self.simple,
            Kind::Complex => &mut self.complex,
            Kind::Jump => &mut self.jump,
            Kind::Branch => &mut self.branch,
            Kind::Immediate => &mut self.immediate,
            Kind::Load => &mut self.load,
            Kind::Store => &mut self.store,
            Kind::Local => &mut self.local,
            Kind::Other => &mut self.other,
        } += by;
    }

    /// Add all of another.
    pub fn merge(&mut self, other: &Mix) {
        self.simple += other.simple;
        self.complex += other.complex;
        self.jump += other.jump;
        self.branch += other.branch;
        self.immediate += other.immediate;
        self.load += other.load;
        self.store += other.store;
        self.local += other.local;
        self.other += other.other;
    }
}
