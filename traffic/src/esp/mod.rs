// SPDX-License-Identifier: Apache-2.0
//! The tester as an ESP peer (RFC 4303, tunnel mode): it seals the frames of a stream and opens those of a port.
//!
//! What is inside stays the stream's own test frame, numbered and checked as ever (frame.rs, verify.rs). Slow
//! ciphers cost no time of a trial: their packets are sealed before it, and opened after it.

pub mod association;
pub mod opening;
pub mod ready;
pub mod sealing;
pub mod suite;
#[cfg(test)]
mod tests;
pub mod ways;

use std::collections::HashMap;

use crate::protocol;

/// The sequence numbers of each SA, from trial to trial: a peer takes none twice (RFC 4303 3.4.3).
#[derive(Debug, Default, Clone)]
pub struct Numbers {
    next: HashMap<Vec<u8>, u64>,
    highest: HashMap<Vec<u8>, u64>,
}

impl Numbers {
    /// The number of the next packet to be sealed; 1 for a new SA.
    pub fn next(&self, sa: &protocol::Association) -> u64 {
        self.next.get(&identity(sa)).copied().unwrap_or(1)
    }

    /// Numbers up to this were used.
    pub fn sealed(&mut self, sa: &protocol::Association, last: u64) {
        let next = self.next.entry(identity(sa)).or_insert(1);
        *next = (*next).max(last + 1);
    }

    /// The highest number that has arrived; 0 of a new SA.
    pub fn highest(&self, sa: &protocol::Association) -> u64 {
        self.highest.get(&identity(sa)).copied().unwrap_or(0)
    }

    pub fn opened(&mut self, sa: &protocol::Association, last: u64) {
        let highest = self.highest.entry(identity(sa)).or_insert(0);
        *highest = (*highest).max(last);
    }
}

/// An SPI may come again with other keys: that is another SA.
fn identity(sa: &protocol::Association) -> Vec<u8> {
    [
        &sa.spi.to_be_bytes(),
        sa.encryption_key.bytes(),
        sa.integrity_key.bytes(),
    ]
    .concat()
}
