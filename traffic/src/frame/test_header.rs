// SPDX-License-Identifier: Apache-2.0
//! The 18-byte test header at the start of a test frame's payload, and the run's key, by which frames of this run are
//! recognised.
//!
//! ```text
//!  0       2        4                    10                   16      18
//!  | magic | stream | sequence (48 bit)  | tx time (48 bit)   | check | 18 19 1a …
//! ```
//! All fields are big-endian. The tx time is CLOCK_MONOTONIC in ns, modulo 2^48 (78 hours). Magic and check depend on
//! the run's key, so frames of another run are not counted as frames of this run. The rest of the payload is a fixed
//! pattern of incrementing octets (after RFC 2544, appendix C), which is compared byte by byte.

use crate::frame::octets::{be16, be48};

pub const TEST_HEADER: usize = 18;
pub const NUMBER_MASK: u64 = (1 << 48) - 1;

/// The key that distinguishes the frames of this run from all others.
#[derive(Debug, Clone, Copy)]
pub struct RunKey {
    pub magic: u16,
    secret: u64,
}

/// Folds a 128-bit product: a cheap mixing step in which every input bit reaches every output bit.
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

impl RunKey {
    pub fn new(run_key: u64, instant: u64) -> Self {
        let secret = mix(run_key ^ 0x9e37_79b9_7f4a_7c15, instant | 1) ^ run_key.rotate_left(17);
        let drawn = (mix(secret ^ 0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db) >> 24) as u16;
        // Zeros are in many frames of others.
        RunKey {
            magic: drawn.max(1),
            secret,
        }
    }

    /// Returns the part of the key that is not in the frames.
    pub fn secret(&self) -> u64 {
        self.secret
    }

    /// Computes the check over magic, stream, sequence and time.
    pub fn check(&self, stream: u16, sequence: u64, time: u64) -> u16 {
        let first = u64::from(self.magic) << 48 | u64::from(stream) << 32 | sequence >> 16;
        let second = sequence << 48 | (time & NUMBER_MASK);
        let mixed = mix(
            first ^ self.secret ^ 0xe703_7ed1_a0b4_28db,
            second ^ self.secret.rotate_left(32) ^ 0x8ebc_6af0_9c88_c6e3,
        );
        (mixed ^ mixed >> 32 ^ mixed >> 16) as u16
    }
}

/// The test header as it was read from a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestHeader {
    pub magic: u16,
    pub stream: u16,
    pub sequence: u64,
    pub time: u64,
    pub check: u16,
}

impl TestHeader {
    /// Reads a header. `bytes` starts at the UDP payload and holds at least 18 bytes.
    pub fn read(bytes: &[u8]) -> Self {
        TestHeader {
            magic: be16(bytes, 0),
            stream: be16(bytes, 2),
            sequence: be48(bytes, 4),
            time: be48(bytes, 10),
            check: be16(bytes, 16),
        }
    }
}

/// Returns the first `length` bytes of the pattern, which follows the test header.
pub fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| (TEST_HEADER + i) as u8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No key has the magic number 0, which many frames of others have where a test header would be.
    #[test]
    fn the_magic_number_is_never_zero() {
        assert!((0..1 << 20).all(|instant| RunKey::new(1, instant).magic != 0));
    }
}
