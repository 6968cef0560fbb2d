// SPDX-License-Identifier: Apache-2.0
//! The whole processor: puts tables and data into its memories, and runs its engines in the order of their time.

use crate::addresses::{CHUNK, DRAM_IN, DRAM_OUT, LOCAL, SCRATCH, SPAN, SRAM};
use crate::code::Code;
use crate::engine::{Engine, Spent};
use crate::memories::Memories;
use crate::mix::Mix;
use crate::port::Use;
use crate::program::Program;
use crate::request::Request;
use crate::thread::Thread;

/// The answer to a request: the figures of a run.
#[derive(serde::Serialize)]
pub struct Answer {
    /// Until the last thread of the last engine ended.
    pub cycles: u64,
    /// All engines together.
    pub spent: Spent,
    pub dynamic: Mix,
    pub cycles_of: Mix,
    /// The instructions of the program.
    pub code: Mix,
    /// Bytes of the program's variables in each memory.
    pub storage: Storage,
    pub scratch: Use,
    pub sram: Use,
    pub dram: Use,
    /// The words each thread wrote, one thread after the other.
    pub output: Vec<u32>,
}

/// The bytes that control data take of each memory: once for each engine, or once in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Storage {
    pub local: u32,
    pub scratch: u32,
    pub sram: u32,
}

impl Storage {
    /// Add up the sizes of a program's variables.
    pub fn of(program: &Program) -> Self {
        let within = |base: u32| {
            let found = program
                .symbols
                .values()
                .filter(|symbol| symbol.0.wrapping_sub(base) < SPAN);
            found.map(|symbol| symbol.1).sum()
        };
        Self {
            local: within(LOCAL),
            scratch: within(SCRATCH),
            sram: within(SRAM),
        }
    }
}

/// Run a program to its end.
pub fn run(request: &Request, program: &Program) -> Result<Answer, String> {
    let processor = &request.processor;
    let threads = (request.engines * request.threads) as u32;
    if threads == 0 || request.input.len() as u32 % (threads * CHUNK / 4) != 0 {
        return Err(format!(
            "{} words of input for {threads} threads",
            request.input.len()
        ));
    }
    let input_bytes = 4 * request.input.len() as u32 / threads;
    let output_bytes = 4 * request.output_words as u32;
    let code = Code::new(&program.code, processor.instructions)?;
    // A kernel that reads ahead reads a chunk beyond its end.
    let mut memories = Memories::new(
        processor,
        (input_bytes * threads + CHUNK) as usize,
        (output_bytes * threads) as usize,
    )?;
    fill(memories.bytes(DRAM_IN, input_bytes * threads)?, &request.input);
    let mut local = vec![0; processor.local as usize];
    put_tables(request, program, &mut local, &mut memories)?;
    let mut engines: Vec<Engine> = (0..request.engines)
        .map(|number| {
            let own = (0..request.threads).map(|thread| {
                let index = (number * request.threads + thread) as u32;
                let (from, to) = (DRAM_IN + index * input_bytes, DRAM_OUT + index * output_bytes);
                Thread::new(
                    program.entry,
                    &[from, to, input_bytes / CHUNK, index],
                    processor.stack,
                )
            });
            Engine::new(number, own.collect(), local.clone(), processor, &code)
        })
        .collect();
    run_all(&mut engines, &code, &mut memories)?;
    let mut found = answer(&engines, &code, &mut memories, output_bytes * threads)?;
    found.storage = Storage::of(program);
    Ok(found)
}

/// Each engine runs until the next reference that is not its turn.
fn run_all(engines: &mut [Engine], code: &Code, memories: &mut Memories) -> Result<(), String> {
    loop {
        let mut order = engines
            .iter()
            .enumerate()
            .filter(|(_, e)| !e.has_ended)
            .map(|(i, e)| (e.now, i));
        let Some(mut first) = order.next() else {
            return Ok(());
        };
        let mut second = (u64::MAX, usize::MAX);
        for next in order {
            if next < first {
                second = first;
                first = next;
            } else if next < second {
                second = next;
            }
        }
        engines[first.1].run(code, memories, second)?;
    }
}

/// Does the control plane's work before the engines begin; it takes no time of theirs.
fn put_tables(
    request: &Request,
    program: &Program,
    local: &mut [u8],
    memories: &mut Memories,
) -> Result<(), String> {
    for (name, words) in &request.tables {
        let Some(&(address, size)) = program.symbols.get(name) else {
            continue;
        };
        if size as usize != 4 * words.len() {
            return Err(format!(
                "{name}: the program has {size} B, the table {} words",
                words.len()
            ));
        }
        let cells = if address.wrapping_sub(LOCAL) < SPAN {
            let (at, room) = ((address - LOCAL) as usize, local.len());
            local
                .get_mut(at..at + size as usize)
                .ok_or_else(|| format!("{name}: {size} B from byte {at} on, local memory has {room} B"))?
        } else {
            memories
                .bytes(address, size)
                .map_err(|what| format!("{name}: {what}"))?
        };
        fill(cells, words);
    }
    Ok(())
}

fn fill(bytes: &mut [u8], words: &[u32]) {
    for (cell, word) in bytes.chunks_exact_mut(4).zip(words) {
        cell.copy_from_slice(&word.to_le_bytes());
    }
}

fn answer(engines: &[Engine], code: &Code, memories: &mut Memories, bytes: u32) -> Result<Answer, String> {
    let mut spent = Spent::default();
    let (mut dynamic, mut cycles_of) = (Mix::default(), Mix::default());
    let mut is_local = vec![false; code.ops.len()];
    for engine in engines {
        spent.executing += engine.spent.executing;
        spent.aborted += engine.spent.aborted;
        spent.idle += engine.spent.idle;
        spent.stalled += engine.spent.stalled;
        dynamic.merge(&engine.dynamic);
        cycles_of.merge(&engine.cycles_of);
        for (all, &one) in is_local.iter_mut().zip(&engine.is_local) {
            *all |= one;
        }
    }
    let output = memories.bytes(DRAM_OUT, bytes)?.chunks_exact(4);
    let output = output
        .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    let [scratch, sram, dram] = [0, 1, 2].map(|number| memories.ports[number].used);
    Ok(Answer {
        cycles: engines.iter().map(|engine| engine.now).max().unwrap_or(0),
        spent,
        dynamic,
        cycles_of,
        code: code.mix(&is_local),
        storage: Storage::default(),
        scratch,
        sram,
        dram,
        output,
    })
}
