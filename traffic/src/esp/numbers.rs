// SPDX-License-Identifier: Apache-2.0
//! The ESP sequence numbers of SAs, which continue from trial to trial.

use std::collections::HashMap;

use crate::protocol;

/// The next ESP sequence number of each SA that seals, and the highest that arrived by each SA that opens. A peer
/// accepts no number twice (RFC 4303 3.4.3).
#[derive(Debug, Default, Clone)]
pub struct Numbers {
    next: HashMap<Vec<u8>, u64>,
    highest: HashMap<Vec<u8>, u64>,
}

impl Numbers {
    /// Returns the number of the next packet to be sealed; 1 for a new SA.
    pub fn next(&self, sa: &protocol::Association) -> u64 {
        self.next.get(&identity(sa)).copied().unwrap_or(1)
    }

    /// Notes that numbers up to this were used.
    pub fn sealed(&mut self, sa: &protocol::Association, last: u64) {
        let next = self.next.entry(identity(sa)).or_insert(1);
        *next = (*next).max(last + 1);
    }

    /// Returns the highest number that has arrived; 0 for a new SA.
    pub fn highest(&self, sa: &protocol::Association) -> u64 {
        self.highest.get(&identity(sa)).copied().unwrap_or(0)
    }

    /// Notes that numbers up to this have arrived.
    pub fn opened(&mut self, sa: &protocol::Association, last: u64) {
        let highest = self.highest.entry(identity(sa)).or_insert(0);
        *highest = (*highest).max(last);
    }
}

/// Returns a key that is unique for each SA. The same SPI with other keys is another SA.
pub fn identity(sa: &protocol::Association) -> Vec<u8> {
    [
        &sa.spi.to_be_bytes(),
        sa.encryption_key.bytes(),
        sa.integrity_key.bytes(),
    ]
    .concat()
}
