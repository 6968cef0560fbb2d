// SPDX-License-Identifier: Apache-2.0
//! An engine: one pipeline that issues an instruction a cycle, of whichever of its threads can run.
//!
//! A thread runs until it has to wait for memory; then the next one in turn that can run goes on. What an engine does
//! by itself needs no other engine, so it may run ahead of them; before it refers to shared memory, all others must
//! have come as far.

use std::collections::VecDeque;

use crate::addresses::{LOCAL, SPAN, STACK, TRANSFER_REGISTERS};
use crate::arithmetic::{compute, is_taken};
use crate::code::Code;
use crate::instruction::{Alu, Op};
use crate::memories::Memories;
use crate::mix::{Kind, Mix};
use crate::request::{Cycles, Processor};
use crate::thread::Thread;

/// The cycles of an engine until its last thread ended, by what it did in them.
#[derive(Clone, Copy, Default, serde::Serialize)]
pub struct Spent {
    pub executing: u64,
    /// Lost in the pipeline, after a branch or when a thread gave way.
    pub aborted: u64,
    /// No thread could run.
    pub idle: u64,
    /// A reference had to wait for room among the engine's commands.
    pub stalled: u64,
}

/// One engine.
pub struct Engine {
    number: usize,
    threads: Vec<Thread>,
    current: usize,
    /// The cycle it is in.
    pub now: u64,
    local: Vec<u8>,
    cycles: Cycles,
    /// The times at which the references that no memory has taken yet will be taken.
    commands: VecDeque<u64>,
    most_commands: usize,
    last_taken: u64,
    pub has_ended: bool,
    pub spent: Spent,
    /// Instructions that were run.
    pub dynamic: Mix,
    /// Cycles executing and aborted, by the instruction they are due to; waiting for a signal counts as a load.
    pub cycles_of: Mix,
    /// For each instruction, true if it reached local memory or the stack.
    pub is_local: Vec<bool>,
}

/// The place that the address of a load or store leads to.
enum Place {
    Local(usize),
    Stack(usize),
    Shared,
}

impl Engine {
    pub fn new(
        number: usize,
        threads: Vec<Thread>,
        local: Vec<u8>,
        processor: &Processor,
        code: &Code,
    ) -> Self {
        Self {
            number,
            threads,
            current: 0,
            now: 0,
            local,
            cycles: processor.cycles,
            commands: VecDeque::new(),
            most_commands: processor.commands,
            last_taken: 0,
            has_ended: false,
            spent: Spent::default(),
            dynamic: Mix::default(),
            cycles_of: Mix::default(),
            is_local: vec![false; code.ops.len()],
        }
    }

    /// Run until the last thread has ended, or until a reference to shared memory would come after `limit`: the cycle
    /// and number of the engine that is next.
    pub fn run(&mut self, code: &Code, memories: &mut Memories, limit: (u64, usize)) -> Result<(), String> {
        while self.choose() {
            let thread = &self.threads[self.current];
            let at = (thread.pc / 4) as usize;
            let op = *code.ops.get(at).ok_or_else(|| self.fault("no instruction"))?;
            if self.is_shared(op) {
                if (self.now, self.number) > limit {
                    return Ok(());
                }
                if !self.has_room() {
                    continue; // time has passed: others may be first now
                }
            }
            self.step(op, at, memories).map_err(|what| self.fault(&what))?;
        }
        self.has_ended = true;
        Ok(())
    }

    fn fault(&self, what: &str) -> String {
        let thread = &self.threads[self.current];
        format!(
            "engine {}, thread {}, at 0x{:x}: {what}",
            self.number, self.current, thread.pc
        )
    }

    /// Make the current thread one that can run, after idle cycles if need be; whether there is one left.
    fn choose(&mut self) -> bool {
        if self.threads[self.current]
            .ready
            .is_some_and(|ready| ready <= self.now)
        {
            return true;
        }
        let count = self.threads.len();
        let in_turn = (1..=count).map(|step| (self.current + step) % count);
        let ready = in_turn.filter_map(|i| self.threads[i].ready.map(|ready| (ready.max(self.now), i)));
        let Some((ready, next)) = ready.min_by_key(|&(ready, _)| ready) else {
            return false;
        };
        self.spent.idle += ready - self.now;
        self.now = ready;
        self.current = next;
        true
    }

    fn is_shared(&self, op: Op) -> bool {
        match op {
            Op::Read { .. } | Op::Write { .. } => true,
            Op::Load { a, offset, .. } | Op::Store { a, offset, .. } => {
                let address = self.threads[self.current].get(a).wrapping_add(offset);
                matches!(place(address), Place::Shared)
            }
            _ => false,
        }
    }

    /// Returns whether a command can be handed out now; if not, the engine stands until one is taken.
    fn has_room(&mut self) -> bool {
        while self.commands.front().is_some_and(|&taken| taken <= self.now) {
            self.commands.pop_front();
        }
        if self.commands.len() < self.most_commands {
            return true;
        }
        let taken = self.commands[0];
        self.spent.stalled += taken - self.now;
        self.now = taken;
        false
    }

    fn step(&mut self, op: Op, at: usize, memories: &mut Memories) -> Result<(), String> {
        let thread = &mut self.threads[self.current];
        let mut next = thread.pc.wrapping_add(4);
        let mut executing = 1;
        let mut kind = op.kind();
        let mut wait = None;
        match op {
            Op::Register { alu, to, a, b } => {
                thread.set(to, compute(alu, thread.get(a), thread.get(b)));
                executing = self.cycles.of(alu);
            }
            Op::Constant { alu, to, a, b } => thread.set(to, compute(alu, thread.get(a), b)),
            Op::Upper { to, value } => thread.set(to, value),
            Op::Jump { to, offset } => {
                thread.set(to, next);
                next = thread.pc.wrapping_add(offset);
            }
            Op::JumpTo { to, a, offset } => {
                let target = thread.get(a).wrapping_add(offset) & !1;
                thread.set(to, next);
                next = target;
            }
            Op::Branch { when, a, b, offset } if is_taken(when, thread.get(a), thread.get(b)) => {
                next = thread.pc.wrapping_add(offset);
            }
            Op::Load { .. } | Op::Store { .. } => {
                (kind, wait) = self.load_or_store(op, memories)?;
                self.is_local[at] |= kind == Kind::Local;
            }
            Op::Read { .. } | Op::Write { .. } => self.refer(op, memories)?,
            Op::Get { to, number, index } => {
                let from = thread.came.get(usize::from(number) + thread.get(index) as usize);
                thread.set(to, *from.ok_or("no such transfer register")?);
            }
            Op::Put { from, number, index } => {
                let value = thread.get(from);
                let to = usize::from(number) + thread.get(index) as usize;
                *thread.goes.get_mut(to).ok_or("no such transfer register")? = value;
            }
            Op::Wait { signal } => wait = Some(thread.signals[usize::from(signal)]),
            Op::End => wait = Some(u64::MAX),
            Op::Branch { .. } | Op::Nothing => {}
        }
        self.pass(op, kind, executing, next, wait);
        Ok(())
    }

    /// Book an instruction's cycles and go to the next one; give way where it waits for a cycle that is to come.
    fn pass(&mut self, op: Op, kind: Kind, executing: u64, next: u32, wait: Option<u64>) {
        let thread = &mut self.threads[self.current];
        self.now += executing;
        let mut aborted = if next == thread.pc.wrapping_add(4) {
            0
        } else {
            self.cycles.branch
        };
        thread.pc = next;
        if let Some(ready) = wait.filter(|&ready| ready > self.now) {
            thread.ready = if op == Op::End { None } else { Some(ready) };
            aborted += self.cycles.swap;
        }
        self.now += aborted;
        self.spent.executing += executing;
        self.spent.aborted += aborted;
        self.dynamic.add(kind, 1);
        let due_to = if matches!(op, Op::Wait { .. }) {
            Kind::Load
        } else {
            kind
        };
        self.cycles_of.add(due_to, executing + aborted);
    }

    /// Do a load or store; its kind, and when it is done where it went to shared memory.
    fn load_or_store(&mut self, op: Op, memories: &mut Memories) -> Result<(Kind, Option<u64>), String> {
        let thread = &mut self.threads[self.current];
        let (a, offset, count) = match op {
            Op::Load { a, offset, bytes, .. } | Op::Store { a, offset, bytes, .. } => (a, offset, bytes),
            _ => unreachable!("only loads and stores come here"),
        };
        let address = thread.get(a).wrapping_add(offset);
        let count = u32::from(count);
        if address % count != 0 {
            return Err(format!("0x{address:x} is no address for {count} B"));
        }
        let outside = || format!("0x{address:x}: beyond the end of its memory");
        let (mut kind, mut wait) = (Kind::Local, None);
        let size = count as usize;
        let registers = &mut thread.registers;
        let cell = match place(address) {
            Place::Local(at) => self.local.get_mut(at..at + size).ok_or_else(outside)?,
            Place::Stack(at) => thread.stack.get_mut(at..at + size).ok_or_else(outside)?,
            Place::Shared => {
                let is_write = matches!(op, Op::Store { .. });
                let times = memories.refer(address, count, is_write, self.now + 1, self.last_taken)?;
                self.last_taken = times.taken;
                self.commands.push_back(times.taken);
                (kind, wait) = (if is_write { Kind::Store } else { Kind::Load }, Some(times.done));
                memories.bytes(address, count)?
            }
        };
        match op {
            Op::Store { from, .. } => cell.copy_from_slice(&registers[from as usize].to_le_bytes()[..size]),
            Op::Load { to, signed, .. } if to != 0 => registers[to as usize] = value(cell, signed),
            _ => {}
        }
        Ok((kind, wait))
    }

    /// Hand out a reference of several words; its signal comes when it is done.
    fn refer(&mut self, op: Op, memories: &mut Memories) -> Result<(), String> {
        let (address, first, words, signal, is_write) = match op {
            Op::Read {
                address,
                first,
                words,
                signal,
            } => (address, first, words, signal, false),
            Op::Write {
                address,
                first,
                words,
                signal,
            } => (address, first, words, signal, true),
            _ => unreachable!("only references come here"),
        };
        let thread = &mut self.threads[self.current];
        let address = thread.get(address);
        let (first, count) = (usize::from(first), usize::from(words));
        if address % 4 != 0 || first + count > TRANSFER_REGISTERS {
            return Err(format!(
                "0x{address:x}: no reference of {count} words with register {first}"
            ));
        }
        let bytes = 4 * u32::from(words);
        let cells = memories.bytes(address, bytes)?.chunks_exact_mut(4);
        for (number, cell) in (first..).zip(cells) {
            if is_write {
                cell.copy_from_slice(&thread.goes[number].to_le_bytes());
            } else {
                thread.came[number] = value(cell, false);
            }
        }
        let times = memories.refer(address, bytes, is_write, self.now + 1, self.last_taken)?;
        self.last_taken = times.taken;
        self.commands.push_back(times.taken);
        let signal = &mut thread.signals[usize::from(signal)];
        *signal = times.done.max(*signal);
        Ok(())
    }
}

impl Cycles {
    /// Cycles that an operation between registers executes.
    fn of(self, alu: Alu) -> u64 {
        match alu {
            Alu::Rol | Alu::Ror => self.rotate,
            _ if alu.multiplies() => self.multiply,
            _ => 1,
        }
    }
}

fn place(address: u32) -> Place {
    if address.wrapping_sub(STACK) < SPAN {
        Place::Stack((address - STACK) as usize)
    } else if address.wrapping_sub(LOCAL) < SPAN {
        Place::Local((address - LOCAL) as usize)
    } else {
        Place::Shared
    }
}

/// The value of one, two or four bytes.
fn value(cell: &[u8], signed: bool) -> u32 {
    match *cell {
        [byte] if signed => byte as i8 as u32,
        [byte] => u32::from(byte),
        [low, high] if signed => i16::from_le_bytes([low, high]) as u32,
        [low, high] => u32::from(u16::from_le_bytes([low, high])),
        _ => u32::from_le_bytes([cell[0], cell[1], cell[2], cell[3]]),
    }
}
