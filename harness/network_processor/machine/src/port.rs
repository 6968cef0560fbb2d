// SPDX-License-Identifier: Apache-2.0
//! The ports of a shared memory: channels that serve one reference after the other, each with a queue that has an end.

use std::collections::VecDeque;

use crate::request::Memory;

/// Thousandths of a cycle.
const PER_CYCLE: u64 = 1000;

/// The times at which a reference was taken into a queue, and at which its signal comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    pub taken: u64,
    pub done: u64,
}

/// Counts of one memory.
#[derive(Clone, Copy, Default, serde::Serialize)]
pub struct Use {
    pub reads: u64,
    pub writes: u64,
    pub transfers: u64,
    /// Thousandths of a cycle that its channels were kept, all together.
    pub busy: u64,
    /// References that came while the queue was full.
    pub refused: u64,
    /// Cycles that references waited between being handed out and being begun.
    pub waited: u64,
}

/// The ports of one memory.
pub struct Ports {
    memory: Memory,
    channels: Vec<Channel>,
    pub used: Use,
}

#[derive(Default)]
struct Channel {
    /// The time at which it is free, thousandths of a cycle.
    free: u64,
    /// The times at which waiting references begin, cycles, in order.
    waiting: VecDeque<u64>,
}

impl Ports {
    pub fn new(memory: Memory) -> Self {
        let channels = (0..memory.channels).map(|_| Channel::default()).collect();
        Self {
            memory,
            channels,
            used: Use::default(),
        }
    }

    /// Take a reference that is handed out at `now`, not before `earliest`; references come in the order of their time.
    pub fn refer(&mut self, offset: u32, bytes: u32, is_write: bool, now: u64, earliest: u64) -> Times {
        let memory = &self.memory;
        let transfers = u64::from((offset % memory.unit + bytes).div_ceil(memory.unit));
        let number = offset.checked_div(memory.interleave).unwrap_or(0) % memory.channels;
        let channel = &mut self.channels[number as usize];
        while channel.waiting.front().is_some_and(|&begins| begins <= now) {
            channel.waiting.pop_front();
        }
        let mut taken = now.max(earliest);
        if let Some(over) = channel.waiting.len().checked_sub(memory.queue) {
            taken = taken.max(channel.waiting[over]);
            self.used.refused += 1;
        }
        let begins = channel.free.max(taken * PER_CYCLE);
        let kept = memory.command + transfers * memory.transfer;
        channel.free = begins + kept;
        let begins_cycle = begins.div_ceil(PER_CYCLE);
        channel.waiting.push_back(begins_cycle);
        let latency = if is_write { memory.write } else { memory.read };
        let further = ((transfers - 1) * memory.transfer).div_ceil(PER_CYCLE);
        self.used.reads += u64::from(!is_write);
        self.used.writes += u64::from(is_write);
        self.used.transfers += transfers;
        self.used.busy += kept;
        self.used.waited += begins_cycle - now;
        Times {
            taken,
            done: begins_cycle + latency + further,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports(channels: u32, queue: usize) -> Ports {
        Ports::new(Memory {
            bytes: 1 << 20,
            read: 100,
            write: 40,
            unit: 16,
            channels,
            interleave: 64,
            command: 2000,
            transfer: 3000,
            queue,
        })
    }

    #[test]
    fn alone_a_reference_takes_its_latency() {
        assert_eq!(
            ports(1, 4).refer(0, 16, false, 7, 0),
            Times { taken: 7, done: 107 }
        );
        assert_eq!(ports(1, 4).refer(0, 8, true, 7, 0), Times { taken: 7, done: 47 });
    }

    #[test]
    fn a_burst_takes_its_further_transfers_more() {
        assert_eq!(ports(1, 4).refer(0, 64, false, 0, 0).done, 109);
        assert_eq!(ports(1, 4).refer(8, 16, false, 0, 0).done, 103); // across two units
    }

    #[test]
    fn references_to_one_channel_are_served_one_after_the_other() {
        let mut one = ports(1, 4);
        let done: Vec<u64> = (0..3).map(|_| one.refer(0, 16, false, 0, 0).done).collect();
        assert_eq!(done, [100, 105, 110]);
        assert_eq!(one.used.busy, 15_000);
        assert_eq!(one.used.waited, 5 + 10);
    }

    #[test]
    fn another_channel_is_free() {
        let mut two = ports(2, 4);
        assert_eq!(two.refer(0, 16, false, 0, 0).done, 100);
        assert_eq!(two.refer(64, 16, false, 0, 0).done, 100);
        assert_eq!(two.refer(128, 16, false, 0, 0).done, 105);
    }

    #[test]
    fn a_full_queue_takes_a_reference_when_the_first_begins() {
        let mut one = ports(1, 2);
        let taken: Vec<u64> = (0..5).map(|_| one.refer(0, 16, false, 0, 0).taken).collect();
        // The first begins at once; two wait for 5 and 10; the next is taken when the one of 5 begins.
        assert_eq!(taken, [0, 0, 0, 5, 10]);
        assert_eq!(one.used.refused, 2);
    }

    #[test]
    fn fractions_of_a_cycle_are_not_lost() {
        let mut one = Ports::new(Memory {
            bytes: 64,
            read: 10,
            write: 10,
            unit: 4,
            channels: 1,
            interleave: 0,
            command: 0,
            transfer: 1500,
            queue: 9,
        });
        let done: Vec<u64> = (0..5).map(|_| one.refer(0, 4, false, 0, 0).done).collect();
        assert_eq!(done, [10, 12, 13, 15, 16]);
    }
}
