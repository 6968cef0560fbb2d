// SPDX-License-Identifier: Apache-2.0
//! Reads a program: an ELF file of 32 bits for RISC-V, little-endian, with its symbols.

use std::collections::BTreeMap;

const HEADER: usize = 52;
const SECTION_HEADER: usize = 40;
const SYMBOL: usize = 16;
const SYMBOL_TABLE: u32 = 2;
const PROGBITS: u32 = 1;
const EXECUTABLE: u32 = 4;
const RISCV: u16 = 243;

/// Code at address 0, and where the names are.
pub struct Program {
    pub code: Vec<u32>,
    pub entry: u32,
    /// Address and size.
    pub symbols: BTreeMap<String, (u32, u32)>,
}

struct Section {
    kind: u32,
    flags: u32,
    address: u32,
    offset: usize,
    size: usize,
    link: usize,
}

/// Read a file's bytes.
pub fn read(elf: &[u8]) -> Result<Program, String> {
    if elf.len() < HEADER || elf[..6] != *b"\x7fELF\x01\x01" || half(elf, 18)? != RISCV {
        return Err("expected an ELF file of 32 bits for RISC-V".to_owned());
    }
    let (table, count) = (word(elf, 32)? as usize, usize::from(half(elf, 48)?));
    let sections = (0..count)
        .map(|number| section(elf, table + number * SECTION_HEADER))
        .collect::<Result<Vec<_>, _>>()?;
    let mut code = None;
    let mut symbols = BTreeMap::new();
    for found in &sections {
        if found.kind == PROGBITS && found.flags & EXECUTABLE != 0 && found.size > 0 {
            if found.address != 0 || code.is_some() {
                return Err("expected one section of code, at address 0".to_owned());
            }
            let bytes = part(elf, found.offset, found.size)?;
            code = Some(
                bytes
                    .chunks_exact(4)
                    .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
                    .collect(),
            );
        }
        if found.kind == SYMBOL_TABLE {
            let names = sections.get(found.link).ok_or("a symbol table without names")?;
            for at in (0..found.size / SYMBOL).map(|number| found.offset + number * SYMBOL) {
                let name = text(elf, names.offset + word(elf, at)? as usize)?;
                symbols.insert(name, (word(elf, at + 4)?, word(elf, at + 8)?));
            }
        }
    }
    Ok(Program {
        code: code.ok_or("expected code, got none")?,
        entry: word(elf, 24)?,
        symbols,
    })
}

fn section(elf: &[u8], at: usize) -> Result<Section, String> {
    Ok(Section {
        kind: word(elf, at + 4)?,
        flags: word(elf, at + 8)?,
        address: word(elf, at + 12)?,
        offset: word(elf, at + 16)? as usize,
        size: word(elf, at + 20)? as usize,
        link: word(elf, at + 24)? as usize,
    })
}

fn part(elf: &[u8], offset: usize, size: usize) -> Result<&[u8], String> {
    elf.get(offset..offset + size)
        .ok_or_else(|| format!("the file ends before byte {}", offset + size))
}

fn word(elf: &[u8], at: usize) -> Result<u32, String> {
    let b = part(elf, at, 4)?;
    Ok(u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

fn half(elf: &[u8], at: usize) -> Result<u16, String> {
    let b = part(elf, at, 2)?;
    Ok(u16::from_le_bytes([b[0], b[1]]))
}

fn text(elf: &[u8], at: usize) -> Result<String, String> {
    let rest = elf.get(at..).ok_or("a name beyond the file's end")?;
    let end = rest
        .iter()
        .position(|&byte| byte == 0)
        .ok_or("a name without an end")?;
    Ok(String::from_utf8_lossy(&rest[..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_elf_file_is_refused() {
        assert!(read(b"\x7fELF\x02\x01").is_err());
        assert!(read(&[0; 200]).is_err());
    }

    #[test]
    fn a_file_that_is_cut_is_refused_with_its_place() {
        let mut elf = vec![0; HEADER];
        elf[..6].copy_from_slice(b"\x7fELF\x01\x01");
        elf[18..20].copy_from_slice(&RISCV.to_le_bytes());
        elf[32..36].copy_from_slice(&100u32.to_le_bytes());
        elf[48..50].copy_from_slice(&1u16.to_le_bytes());
        assert_eq!(read(&elf).err().as_deref(), Some("the file ends before byte 108"));
    }
}
