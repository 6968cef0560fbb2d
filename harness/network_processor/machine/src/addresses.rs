// SPDX-License-Identifier: Apache-2.0
//! The addresses in an engine's address space; ../kernels/link.ld has the same.

/// Local memory, of one engine.
pub const LOCAL: u32 = 0x1000_0000;
/// Scratch memory, shared by all engines.
pub const SCRATCH: u32 = 0x2000_0000;
/// SRAM, shared by all engines.
pub const SRAM: u32 = 0x3000_0000;
/// The data that the kernels read, in DRAM; the first thread's part is first.
pub const DRAM_IN: u32 = 0x4000_0000;
/// The data that the kernels write, in DRAM.
pub const DRAM_OUT: u32 = 0x4800_0000;
/// A thread's stack: registers that the compiler ran out of.
pub const STACK: u32 = 0x7000_0000;
/// Each of these parts ends at the latest so many bytes further on.
pub const SPAN: u32 = 0x0800_0000;
/// Bytes of a chunk: kernels count their work in them.
pub const CHUNK: u32 = 64;
/// Transfer registers of a thread in each direction.
pub const TRANSFER_REGISTERS: usize = 32;
/// Signals of a thread.
pub const SIGNALS: usize = 8;
