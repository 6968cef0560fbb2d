// SPDX-License-Identifier: Apache-2.0
//! Decodes RV32I, its M and Zbb, and the engines' own instructions (opcode custom-0, ../kernels/engine.h).

use crate::mix::Kind;

/// The arithmetic of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alu {
    Add,
    Sub,
    Sll,
    Slt,
    Sltu,
    Xor,
    Srl,
    Sra,
    Or,
    And,
    Mul,
    Mulh,
    Mulhsu,
    Mulhu,
    Div,
    Divu,
    Rem,
    Remu,
    Rol,
    Ror,
    Andn,
    Orn,
    Xnor,
    Min,
    Minu,
    Max,
    Maxu,
    Zexth,
    Clz,
    Ctz,
    Cpop,
    Sextb,
    Sexth,
    Orcb,
    Rev8,
}

/// The condition of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Equal,
    NotEqual,
    Less,
    NotLess,
    Below,
    NotBelow,
}

/// One decoded instruction; registers by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Register {
        alu: Alu,
        to: u8,
        a: u8,
        b: u8,
    },
    Constant {
        alu: Alu,
        to: u8,
        a: u8,
        b: u32,
    },
    Upper {
        to: u8,
        value: u32,
    },
    Jump {
        to: u8,
        offset: u32,
    },
    JumpTo {
        to: u8,
        a: u8,
        offset: u32,
    },
    Branch {
        when: When,
        a: u8,
        b: u8,
        offset: u32,
    },
    Load {
        to: u8,
        a: u8,
        offset: u32,
        bytes: u8,
        signed: bool,
    },
    Store {
        from: u8,
        a: u8,
        offset: u32,
        bytes: u8,
    },
    Read {
        address: u8,
        first: u8,
        words: u8,
        signal: u8,
    },
    Write {
        address: u8,
        first: u8,
        words: u8,
        signal: u8,
    },
    Get {
        to: u8,
        number: u8,
        index: u8,
    },
    Put {
        from: u8,
        number: u8,
        index: u8,
    },
    Wait {
        signal: u8,
    },
    Nothing,
    End,
}

impl Op {
    /// The kind that is known without running it; of loads and stores that is where they go.
    pub fn kind(self) -> Kind {
        match self {
            Op::Register {
                alu: Alu::Rol | Alu::Ror,
                ..
            } => Kind::Complex,
            Op::Register { alu, .. } if alu.multiplies() => Kind::Complex,
            Op::Constant {
                alu: Alu::Add, a: 0, ..
            }
            | Op::Upper { .. } => Kind::Immediate,
            Op::Register { .. } | Op::Constant { .. } | Op::Get { .. } | Op::Put { .. } => Kind::Simple,
            Op::Jump { .. } | Op::JumpTo { .. } => Kind::Jump,
            Op::Branch { .. } => Kind::Branch,
            Op::Load { .. } | Op::Read { .. } => Kind::Load,
            Op::Store { .. } | Op::Write { .. } => Kind::Store,
            Op::Wait { .. } | Op::Nothing | Op::End => Kind::Other,
        }
    }
}

impl Alu {
    /// Returns whether it is an instruction of the M extension.
    pub fn multiplies(self) -> bool {
        use Alu::*;
        matches!(self, Mul | Mulh | Mulhsu | Mulhu | Div | Divu | Rem | Remu)
    }
}

/// Decode the word at an address of the code; Err is what was found.
pub fn decode(word: u32, pc: u32) -> Result<Op, String> {
    let unknown = || format!("at 0x{pc:x}: no instruction of an engine: 0x{word:08x}");
    let (to, a, b) = (field(word, 7), field(word, 15), field(word, 20));
    let (f3, f7) = (word >> 12 & 7, word >> 25);
    let immediate = (word as i32 >> 20) as u32;
    Ok(match word & 0x7f {
        0x37 => Op::Upper {
            to,
            value: word & 0xffff_f000,
        },
        0x17 => Op::Upper {
            to,
            value: pc.wrapping_add(word & 0xffff_f000),
        },
        0x6f => Op::Jump {
            to,
            offset: jump_offset(word),
        },
        0x67 if f3 == 0 => Op::JumpTo {
            to,
            a,
            offset: immediate,
        },
        0x63 => Op::Branch {
            when: condition(f3).ok_or_else(unknown)?,
            a,
            b,
            offset: branch_offset(word),
        },
        0x03 | 0x23 => load_or_store(word, immediate).ok_or_else(unknown)?,
        0x13 => {
            let (alu, b) = with_constant(f3, immediate).ok_or_else(unknown)?;
            Op::Constant { alu, to, a, b }
        }
        0x33 => Op::Register {
            alu: with_register(f3, f7, b).ok_or_else(unknown)?,
            to,
            a,
            b,
        },
        0x0b => own(word).ok_or_else(unknown)?,
        0x0f => Op::Nothing,
        0x73 if word >> 7 == 0 => Op::End,
        _ => return Err(unknown()),
    })
}

fn load_or_store(word: u32, immediate: u32) -> Option<Op> {
    let (a, f3) = (field(word, 15), word >> 12 & 7);
    if word & 0x20 == 0 {
        let (bytes, signed) = width(f3)?;
        return Some(Op::Load {
            to: field(word, 7),
            a,
            offset: immediate,
            bytes,
            signed,
        });
    }
    let offset = immediate & 0xffff_ffe0 | word >> 7 & 31;
    (f3 < 3).then(|| Op::Store {
        from: field(word, 20),
        a,
        offset,
        bytes: 1 << f3,
    })
}

fn field(word: u32, at: u32) -> u8 {
    (word >> at & 31) as u8
}

fn jump_offset(word: u32) -> u32 {
    let sign = (word as i32 >> 31) as u32;
    sign << 20 | (word & 0x000f_f000) | (word >> 20 & 1) << 11 | (word >> 21 & 0x3ff) << 1
}

fn branch_offset(word: u32) -> u32 {
    let sign = (word as i32 >> 31) as u32;
    sign << 12 | (word >> 7 & 1) << 11 | (word >> 25 & 0x3f) << 5 | (word >> 8 & 15) << 1
}

fn condition(f3: u32) -> Option<When> {
    Some(match f3 {
        0 => When::Equal,
        1 => When::NotEqual,
        4 => When::Less,
        5 => When::NotLess,
        6 => When::Below,
        7 => When::NotBelow,
        _ => return None,
    })
}

fn width(f3: u32) -> Option<(u8, bool)> {
    (f3 != 3 && f3 < 6).then_some((1 << (f3 & 3), f3 < 4))
}

fn with_constant(f3: u32, immediate: u32) -> Option<(Alu, u32)> {
    let (high, low) = (immediate >> 5 & 0x7f, immediate & 31);
    Some(match (f3, high) {
        (0, _) => (Alu::Add, immediate),
        (2, _) => (Alu::Slt, immediate),
        (3, _) => (Alu::Sltu, immediate),
        (4, _) => (Alu::Xor, immediate),
        (6, _) => (Alu::Or, immediate),
        (7, _) => (Alu::And, immediate),
        (1, 0x00) => (Alu::Sll, low),
        (5, 0x00) => (Alu::Srl, low),
        (5, 0x20) => (Alu::Sra, low),
        (5, 0x30) => (Alu::Ror, low),
        (5, 0x14) if low == 7 => (Alu::Orcb, 0),
        (5, 0x34) if low == 24 => (Alu::Rev8, 0),
        (1, 0x30) => match low {
            0 => (Alu::Clz, 0),
            1 => (Alu::Ctz, 0),
            2 => (Alu::Cpop, 0),
            4 => (Alu::Sextb, 0),
            5 => (Alu::Sexth, 0),
            _ => return None,
        },
        _ => return None,
    })
}

fn with_register(f3: u32, f7: u32, b: u8) -> Option<Alu> {
    const PLAIN: [Alu; 8] = [
        Alu::Add,
        Alu::Sll,
        Alu::Slt,
        Alu::Sltu,
        Alu::Xor,
        Alu::Srl,
        Alu::Or,
        Alu::And,
    ];
    const MULTIPLYING: [Alu; 8] = [
        Alu::Mul,
        Alu::Mulh,
        Alu::Mulhsu,
        Alu::Mulhu,
        Alu::Div,
        Alu::Divu,
        Alu::Rem,
        Alu::Remu,
    ];
    Some(match (f7, f3) {
        (0x00, _) => PLAIN[f3 as usize],
        (0x01, _) => MULTIPLYING[f3 as usize],
        (0x20, 0) => Alu::Sub,
        (0x20, 5) => Alu::Sra,
        (0x20, 4) => Alu::Xnor,
        (0x20, 6) => Alu::Orn,
        (0x20, 7) => Alu::Andn,
        (0x30, 1) => Alu::Rol,
        (0x30, 5) => Alu::Ror,
        (0x05, 4) => Alu::Min,
        (0x05, 5) => Alu::Minu,
        (0x05, 6) => Alu::Max,
        (0x05, 7) => Alu::Maxu,
        (0x04, 4) if b == 0 => Alu::Zexth,
        _ => return None,
    })
}

fn own(word: u32) -> Option<Op> {
    let (to, a, b, f7) = (field(word, 7), field(word, 15), field(word, 20), word >> 25);
    let (words, signal, number) = ((f7 & 15) as u8 + 1, (f7 >> 4) as u8, (f7 & 31) as u8);
    Some(match word >> 12 & 7 {
        0 => Op::Read {
            address: a,
            first: to,
            words,
            signal,
        },
        1 => Op::Write {
            address: a,
            first: to,
            words,
            signal,
        },
        2 => Op::Get { to, number, index: 0 },
        3 => Op::Put {
            from: a,
            number,
            index: 0,
        },
        4 if f7 < 8 => Op::Wait { signal: f7 as u8 },
        5 => Op::Get { to, number, index: a },
        6 => Op::Put {
            from: a,
            number,
            index: b,
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // Words as the GNU assembler writes them.
    #[test]
    #[rustfmt::skip]
    fn the_words_of_an_assembler_are_understood() {
        let known = [
            (0xff41_0113, Op::Constant { alu: Alu::Add, to: 2, a: 2, b: -12i32 as u32 }),
            (0x1234_5537, Op::Upper { to: 10, value: 0x1234_5000 }),
            (0xfe05_1ee3, Op::Branch { when: When::NotEqual, a: 10, b: 0, offset: -4i32 as u32 }),
            (0xff9f_f06f, Op::Jump { to: 0, offset: -8i32 as u32 }),
            (0x0000_8067, Op::JumpTo { to: 0, a: 1, offset: 0 }),
            (0xfec4_2783, Op::Load { to: 15, a: 8, offset: -20i32 as u32, bytes: 4, signed: true }),
            (0x0000_4503, Op::Load { to: 10, a: 0, offset: 0, bytes: 1, signed: false }),
            (0xfea4_2623, Op::Store { from: 10, a: 8, offset: -20i32 as u32, bytes: 4 }),
            (0x60b5_1533, Op::Register { alu: Alu::Rol, to: 10, a: 10, b: 11 }),
            (0x02a6_0533, Op::Register { alu: Alu::Mul, to: 10, a: 12, b: 10 }),
            (0x6985_d593, Op::Constant { alu: Alu::Rev8, to: 11, a: 11, b: 0 }),
            (0x2206_028b, Op::Read { address: 12, first: 5, words: 2, signal: 1 }),
            (0x0600_250b, Op::Get { to: 10, number: 3, index: 0 }),
            (0x0000_0073, Op::End),
        ];
        for (word, op) in known {
            assert_eq!(decode(word, 0), Ok(op), "0x{word:08x}");
        }
    }

    #[test]
    fn what_an_engine_has_not_is_refused_with_its_place() {
        for word in [0, 0x0000_3503, 0x3000_2073, 0x1000_400b] {
            assert!(
                decode(word, 0x40).unwrap_err().starts_with("at 0x40: "),
                "0x{word:08x}"
            );
        }
    }

    #[test]
    fn kinds_are_those_of_the_paper() {
        let kind = |word| decode(word, 0).map(Op::kind);
        assert_eq!(kind(0x1234_5537), Ok(Kind::Immediate)); // lui
        assert_eq!(kind(0x0010_0513), Ok(Kind::Immediate)); // li
        assert_eq!(kind(0x0015_0513), Ok(Kind::Simple)); // addi
        assert_eq!(kind(0x60b5_1533), Ok(Kind::Complex)); // rol
        assert_eq!(kind(0x6045_5513), Ok(Kind::Simple)); // rori
        assert_eq!(kind(0x0000_8067), Ok(Kind::Jump));
    }
}
