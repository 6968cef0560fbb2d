// SPDX-License-Identifier: Apache-2.0
//! The shared memories: what is in them, and their ports.

use crate::addresses::{DRAM_IN, DRAM_OUT, SCRATCH, SPAN, SRAM};
use crate::port::{Ports, Times};
use crate::request::Processor;

/// A part of the address space that all engines share.
struct Part {
    base: u32,
    bytes: Vec<u8>,
    /// The number of the memory that it is in.
    ports: usize,
    name: &'static str,
}

/// All of them.
pub struct Memories {
    parts: [Part; 4],
    /// Scratch, SRAM, DRAM.
    pub ports: [Ports; 3],
}

impl Memories {
    /// Empty ones; DRAM holds so many bytes of input and of output.
    pub fn new(processor: &Processor, input: usize, output: usize) -> Result<Self, String> {
        if input + output > processor.dram.bytes as usize {
            return Err(format!(
                "{} B of DRAM do not hold {input} B and {output} B",
                processor.dram.bytes
            ));
        }
        let part = |base, bytes: usize, ports, name| Part {
            base,
            bytes: vec![0; bytes],
            ports,
            name,
        };
        Ok(Self {
            parts: [
                part(SCRATCH, processor.scratch.bytes as usize, 0, "scratch memory"),
                part(SRAM, processor.sram.bytes as usize, 1, "SRAM"),
                part(DRAM_IN, input, 2, "DRAM for input"),
                part(DRAM_OUT, output, 2, "DRAM for output"),
            ],
            ports: [&processor.scratch, &processor.sram, &processor.dram].map(|m| Ports::new(m.clone())),
        })
    }

    /// The bytes at an address, for whoever pays no time: the control plane.
    pub fn bytes(&mut self, address: u32, count: u32) -> Result<&mut [u8], String> {
        let part = self.part(address)?;
        let (at, name) = ((address - part.base) as usize, part.name);
        let size = part.bytes.len();
        part.bytes.get_mut(at..at + count as usize).ok_or_else(|| {
            format!("0x{address:x}: {count} B from byte {at} on are more than the {size} B of {name}")
        })
    }

    /// Hand out a reference at `now`; when it is taken (not before `earliest`) and when it is done.
    pub fn refer(
        &mut self,
        address: u32,
        bytes: u32,
        is_write: bool,
        now: u64,
        earliest: u64,
    ) -> Result<Times, String> {
        let part = self.part(address)?;
        let (ports, offset) = (part.ports, address - part.base);
        Ok(self.ports[ports].refer(offset, bytes, is_write, now, earliest))
    }

    fn part(&mut self, address: u32) -> Result<&mut Part, String> {
        self.parts
            .iter_mut()
            .find(|part| address.wrapping_sub(part.base) < SPAN)
            .ok_or_else(|| format!("0x{address:x}: there is no memory"))
    }
}
