// SPDX-License-Identifier: Apache-2.0
//! Computes the results of RV32's arithmetic and branches.

use crate::instruction::{Alu, When};

/// The result of an operation on two words.
pub fn compute(alu: Alu, a: u32, b: u32) -> u32 {
    let (signed_a, signed_b) = (a as i32, b as i32);
    match alu {
        Alu::Add => a.wrapping_add(b),
        Alu::Sub => a.wrapping_sub(b),
        Alu::Sll => a << (b & 31),
        Alu::Srl => a >> (b & 31),
        Alu::Sra => (signed_a >> (b & 31)) as u32,
        Alu::Slt => u32::from(signed_a < signed_b),
        Alu::Sltu => u32::from(a < b),
        Alu::Xor => a ^ b,
        Alu::Or => a | b,
        Alu::And => a & b,
        Alu::Mul => a.wrapping_mul(b),
        Alu::Mulh => ((i64::from(signed_a) * i64::from(signed_b)) >> 32) as u32,
        Alu::Mulhsu => ((i64::from(signed_a) * i64::from(b)) >> 32) as u32,
        Alu::Mulhu => ((u64::from(a) * u64::from(b)) >> 32) as u32,
        Alu::Div if b == 0 => u32::MAX,
        Alu::Div => signed_a.wrapping_div(signed_b) as u32,
        Alu::Divu => a.checked_div(b).unwrap_or(u32::MAX),
        Alu::Rem if b == 0 => a,
        Alu::Rem => signed_a.wrapping_rem(signed_b) as u32,
        Alu::Remu => a.checked_rem(b).unwrap_or(a),
        Alu::Rol => a.rotate_left(b & 31),
        Alu::Ror => a.rotate_right(b & 31),
        Alu::Andn => a & !b,
        Alu::Orn => a | !b,
        Alu::Xnor => !(a ^ b),
        Alu::Min => signed_a.min(signed_b) as u32,
        Alu::Minu => a.min(b),
        Alu::Max => signed_a.max(signed_b) as u32,
        Alu::Maxu => a.max(b),
        Alu::Zexth => a & 0xffff,
        Alu::Clz => a.leading_zeros(),
        Alu::Ctz => a.trailing_zeros(),
        Alu::Cpop => a.count_ones(),
        Alu::Sextb => a as i8 as u32,
        Alu::Sexth => a as i16 as u32,
        Alu::Orcb => a
            .to_le_bytes()
            .iter()
            .rev()
            .fold(0, |word, &byte| word << 8 | if byte > 0 { 255 } else { 0 }),
        Alu::Rev8 => a.swap_bytes(),
    }
}

/// Returns whether a branch is taken.
pub fn is_taken(when: When, a: u32, b: u32) -> bool {
    match when {
        When::Equal => a == b,
        When::NotEqual => a != b,
        When::Less => (a as i32) < (b as i32),
        When::NotLess => (a as i32) >= (b as i32),
        When::Below => a < b,
        When::NotBelow => a >= b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_count_where_they_should() {
        let minus = -7i32 as u32;
        assert_eq!(compute(Alu::Sra, minus, 1), -4i32 as u32);
        assert_eq!(compute(Alu::Srl, minus, 1), 0x7fff_fffc);
        assert_eq!(
            (compute(Alu::Slt, minus, 1), compute(Alu::Sltu, minus, 1)),
            (1, 0)
        );
        assert_eq!(compute(Alu::Mulh, minus, 3), u32::MAX);
        assert_eq!(compute(Alu::Mulhu, minus, 3), 2);
        assert_eq!(compute(Alu::Mulhsu, minus, 3), u32::MAX);
        assert_eq!(
            (compute(Alu::Min, minus, 1), compute(Alu::Minu, minus, 1)),
            (minus, 1)
        );
        assert_eq!(
            (compute(Alu::Max, minus, 1), compute(Alu::Maxu, minus, 1)),
            (1, minus)
        );
        assert!(is_taken(When::Less, minus, 1) && !is_taken(When::Below, minus, 1));
        assert!(!is_taken(When::NotLess, minus, 1) && is_taken(When::NotBelow, minus, 1));
    }

    #[test]
    fn division_by_zero_is_as_risc_v_has_it() {
        assert_eq!(
            (compute(Alu::Div, 5, 0), compute(Alu::Divu, 5, 0)),
            (u32::MAX, u32::MAX)
        );
        assert_eq!((compute(Alu::Rem, 5, 0), compute(Alu::Remu, 5, 0)), (5, 5));
        let least = i32::MIN as u32;
        assert_eq!(
            (
                compute(Alu::Div, least, u32::MAX),
                compute(Alu::Rem, least, u32::MAX)
            ),
            (least, 0)
        );
    }

    #[test]
    fn bits_are_moved_as_zbb_has_it() {
        assert_eq!(compute(Alu::Rol, 0x8000_0001, 4), 0x18);
        assert_eq!(compute(Alu::Ror, 0x8000_0001, 36), 0x1800_0000);
        assert_eq!(compute(Alu::Rev8, 0x0102_0304, 0), 0x0403_0201);
        assert_eq!(compute(Alu::Orcb, 0x0100_0304, 0), 0xff00_ffff);
        assert_eq!(
            (compute(Alu::Sextb, 0x80, 0), compute(Alu::Sexth, 0x8000, 0)),
            (0xffff_ff80, 0xffff_8000)
        );
        assert_eq!(
            (
                compute(Alu::Andn, 6, 3),
                compute(Alu::Orn, 0, !3),
                compute(Alu::Xnor, 1, !0)
            ),
            (4, 3, 1)
        );
    }
}
