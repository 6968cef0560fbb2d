// SPDX-License-Identifier: Apache-2.0
//! The machine on programs whose cycles can be counted by hand.

use std::collections::BTreeMap;

use crate::addresses::{DRAM_OUT, SCRATCH};
use crate::machine::{Answer, Storage, run};
use crate::program::Program;
use crate::request::{Cycles, Memory, Processor, Request};

const END: u32 = 0x0000_0073;
const LATENCY: u64 = 100;

fn memory(bytes: u32) -> Memory {
    Memory {
        bytes,
        read: LATENCY,
        write: 40,
        unit: 4,
        channels: 1,
        interleave: 0,
        command: 0,
        transfer: 1000,
        queue: 16,
    }
}

fn processor() -> Processor {
    Processor {
        cycles: Cycles {
            branch: 0,
            swap: 0,
            multiply: 5,
            rotate: 2,
        },
        local: 64,
        stack: 64,
        instructions: 1000,
        commands: 16,
        scratch: memory(4096),
        sram: memory(4096),
        dram: memory(1 << 20),
    }
}

fn request(engines: usize, threads: usize, processor: Processor) -> Request {
    Request {
        program: "test".into(),
        processor,
        engines,
        threads,
        tables: BTreeMap::new(),
        input: vec![0; 16 * engines * threads],
        output_words: 1,
    }
}

fn answer(code: &[u32], engines: usize, threads: usize, processor: Processor) -> Answer {
    let program = Program {
        code: code.to_vec(),
        entry: 0,
        symbols: BTreeMap::new(),
    };
    run(&request(engines, threads, processor), &program).unwrap()
}

fn lui(to: u32, value: u32) -> u32 {
    value | to << 7 | 0x37
}

fn addi(to: u32, a: u32, constant: u32) -> u32 {
    constant << 20 | a << 15 | to << 7 | 0x13
}

fn lw(to: u32, a: u32, offset: u32) -> u32 {
    offset << 20 | a << 15 | 2 << 12 | to << 7 | 0x03
}

fn sw(from: u32, a: u32) -> u32 {
    from << 20 | a << 15 | 2 << 12 | 0x23
}

fn mul(to: u32, a: u32, b: u32) -> u32 {
    1 << 25 | b << 20 | a << 15 | to << 7 | 0x33
}

/// bne a, zero, back by so many bytes.
fn bne_back(a: u32, bytes: u32) -> u32 {
    let offset = bytes.wrapping_neg();
    (offset >> 12 & 1) << 31
        | (offset >> 5 & 0x3f) << 25
        | a << 15
        | 1 << 12
        | (offset >> 1 & 15) << 8
        | (offset >> 11 & 1) << 7
        | 0x63
}

fn read(address: u32, first: u32, words: u32, signal: u32) -> u32 {
    (words - 1 + 16 * signal) << 25 | address << 15 | first << 7 | 0x0b
}

fn wait(signal: u32) -> u32 {
    signal << 25 | 4 << 12 | 0x0b
}

/// A loop of `n` instructions, the first of which loads from scratch memory.
fn loop_with_one_load(n: u32, turns: u32) -> Vec<u32> {
    let mut code = vec![lui(5, SCRATCH), addi(6, 0, turns), lw(7, 5, 0)];
    code.extend((0..n - 3).map(|_| addi(8, 8, 1)));
    code.extend([addi(6, 6, 0xfff), bne_back(6, 4 * (n - 1)), END]);
    code
}

#[test]
fn one_thread_with_one_reference_in_n_instructions_executes_n_of_n_and_the_latency() {
    for n in [3, 10, 50] {
        let turns = 200;
        let found = answer(&loop_with_one_load(n as u32, turns as u32), 1, 1, processor());
        assert_eq!(found.spent.executing, 3 + turns * n, "n {n}");
        assert_eq!(found.spent.idle, turns * LATENCY, "n {n}");
        assert_eq!(found.cycles, 3 + turns * (n + LATENCY), "n {n}");
    }
}

#[test]
fn threads_fill_the_latency_until_the_pipeline_is_full() {
    let (n, turns) = (26, 500);
    let share = |threads| {
        let found = answer(&loop_with_one_load(n, turns), 1, threads, processor());
        found.spent.executing as f64 / found.cycles as f64
    };
    // k n / (n + L) for k threads, at most 1.
    for (threads, expected) in [(1, 26.0 / 126.0), (2, 52.0 / 126.0), (4, 104.0 / 126.0), (8, 1.0)] {
        assert!(
            (share(threads) - expected).abs() < 0.01,
            "{threads} threads: {}",
            share(threads)
        );
    }
}

#[test]
fn a_port_is_the_limit_of_all_engines_together() {
    let mut slow = processor();
    slow.scratch.transfer = 20_000;
    let turns = 300;
    let found = answer(&loop_with_one_load(3, turns as u32), 8, 2, slow);
    assert!(found.cycles >= 20 * turns * 16, "{}", found.cycles);
    assert!(found.cycles < 20 * turns * 16 + 2 * LATENCY, "{}", found.cycles);
    assert_eq!(found.scratch.reads, turns * 16);
    assert_eq!(found.scratch.busy, 20_000 * turns * 16);
}

#[test]
fn engines_without_a_common_memory_do_not_know_of_each_other() {
    let alone = answer(&loop_with_one_load(10, 100), 1, 1, processor());
    let mut code = loop_with_one_load(10, 100);
    code[2] = addi(7, 0, 1);
    let eight = answer(&code, 8, 1, processor());
    assert_eq!(eight.spent.executing, 8 * alone.spent.executing);
    assert_eq!(eight.spent.idle, 0);
}

#[test]
fn a_full_queue_of_commands_stalls_the_engine() {
    let mut narrow = processor();
    narrow.commands = 2;
    narrow.scratch.queue = 1;
    narrow.scratch.transfer = 50_000;
    // Six references are handed out one after the other, and nobody waits for them.
    let mut code = vec![lui(5, SCRATCH)];
    code.extend([read(5, 0, 1, 0); 6]);
    code.extend([wait(0), END]);
    let found = answer(&code, 1, 1, narrow);
    assert!(found.spent.stalled > 0);
    assert_eq!(found.scratch.refused, 4);
    // The first begins at cycle 2; the last five services later, and its latency after that.
    assert_eq!(found.cycles, 2 + 5 * 50 + LATENCY + 1);
    assert_eq!(answer(&code, 1, 1, processor()).spent.stalled, 0);
}

#[test]
fn whoever_does_not_wait_goes_on_while_a_reference_is_under_way() {
    let mut code = vec![lui(5, SCRATCH), read(5, 0, 4, 3)];
    code.extend([addi(8, 8, 1); 60]);
    code.extend([wait(3), END]);
    let found = answer(&code, 1, 1, processor());
    // Four words take three transfers more than one; 60 cycles of it are used, then comes the end.
    assert_eq!(found.cycles, 2 + LATENCY + 3 + 1);
    assert_eq!(found.spent.idle, LATENCY + 3 - 61);
}

#[test]
fn a_thread_that_gives_way_and_a_branch_that_is_taken_abort_cycles() {
    let mut priced = processor();
    priced.cycles = Cycles {
        branch: 3,
        swap: 7,
        multiply: 5,
        rotate: 2,
    };
    let found = answer(&loop_with_one_load(10, 20), 1, 1, priced);
    assert_eq!(found.spent.aborted, 20 * 7 + 19 * 3 + 7);
    assert_eq!(found.spent.idle, 20 * (LATENCY - 7));
    assert_eq!(found.cycles_of.branch, 20 + 19 * 3);
    assert_eq!(found.cycles_of.load, 20 * (1 + 7));
}

#[test]
fn a_multiplication_takes_what_it_costs() {
    let found = answer(&[mul(5, 6, 7), END], 1, 1, processor());
    assert_eq!(
        (
            found.spent.executing,
            found.dynamic.complex,
            found.cycles_of.complex
        ),
        (6, 1, 5)
    );
}

#[test]
fn each_kind_of_instruction_is_counted() {
    let code = [
        lui(5, DRAM_OUT),
        addi(6, 0, 9),
        addi(6, 6, 1),
        sw(6, 11),
        lw(7, 10, 0),
        addi(2, 2, 0xffc),
        sw(6, 2),
        lw(8, 2, 0),
        mul(9, 6, 6),
        bne_back(0, 4),
        END,
    ];
    let found = answer(&code, 1, 1, processor());
    let (ran, code) = (found.dynamic, found.code);
    for mix in [ran, code] {
        assert_eq!(
            (mix.immediate, mix.simple, mix.store, mix.load, mix.local),
            (2, 2, 1, 1, 2)
        );
        assert_eq!((mix.complex, mix.branch, mix.jump, mix.other), (1, 1, 0, 1));
    }
    assert_eq!(found.output, [10]);
}

#[test]
fn tables_come_to_their_symbols() {
    let code = [lui(5, SCRATCH), lw(6, 5, 4), sw(6, 11), END];
    let symbols = BTreeMap::from([("table".to_owned(), (SCRATCH, 8))]);
    let program = Program {
        code: code.to_vec(),
        entry: 0,
        symbols,
    };
    let mut asked = request(1, 1, processor());
    asked.tables = BTreeMap::from([("table".to_owned(), vec![1, 77]), ("another".to_owned(), vec![5])]);
    let found = run(&asked, &program).unwrap();
    assert_eq!(found.output, [77]);
    assert_eq!(
        found.storage,
        Storage {
            local: 0,
            scratch: 8,
            sram: 0
        }
    );
    asked.tables.insert("table".to_owned(), vec![1]);
    let refused = run(&asked, &program).err().unwrap();
    assert_eq!(refused, "table: the program has 8 B, the table 1 words");
}

#[test]
fn what_an_engine_cannot_do_is_told_with_its_place() {
    let program = |code: &[u32]| Program {
        code: code.to_vec(),
        entry: 0,
        symbols: BTreeMap::new(),
    };
    let refused = |code: &[u32]| run(&request(1, 1, processor()), &program(code)).err().unwrap();
    assert!(refused(&[lui(5, 0x5000_0000), lw(6, 5, 0)]).contains("at 0x4: 0x50000000: there is no memory"));
    assert!(refused(&[lui(5, SCRATCH), lw(6, 5, 2)]).contains("no address for 4 B"));
    assert!(refused(&[addi(5, 0, 1)]).contains("at 0x4: no instruction"));
    assert!(refused(&[0; 1001]).contains("room for 1000"));
    assert!(refused(&[lui(5, 0x1000_0000), lw(6, 5, 64), END]).contains("beyond the end"));
}

#[test]
fn the_same_request_has_the_same_answer() {
    let told = || {
        let found = answer(&loop_with_one_load(7, 90), 5, 3, processor());
        (found.cycles, found.spent.idle, found.scratch.waited)
    };
    assert_eq!(told(), told());
}
