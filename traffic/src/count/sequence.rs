// SPDX-License-Identifier: Apache-2.0
//! The sequence numbers that arrived: exact counts of lost, duplicated and reordered frames.

/// A set of sequence numbers, one bit for each. It grows as needed.
#[derive(Debug, Default)]
struct Bitmap(Vec<u64>);

impl Bitmap {
    /// Adds `number`; returns false if the set already had it.
    fn insert(&mut self, number: u64) -> bool {
        let word = (number / 64) as usize;
        if word >= self.0.len() {
            self.0.resize((word + 1).next_multiple_of(4096), 0);
        }
        let bit = 1 << (number % 64);
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }

    fn word(&self, index: usize) -> u64 {
        self.0.get(index).copied().unwrap_or(0)
    }

    fn contains(&self, number: u64) -> bool {
        self.word((number / 64) as usize) & (1 << (number % 64)) != 0
    }
}

/// A run of consecutive sequence numbers.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub struct Run {
    pub first: u64,
    pub last: u64,
}

/// The counts of a stream's frames, which are identified by their sequence numbers.
#[derive(Debug, Default)]
pub struct SequenceCount {
    intact: Bitmap,
    damaged: Bitmap,
    highest: Option<u64>,
    pub received: u64,
    pub duplicated: u64,
    pub reordered: u64,
    pub corrupted: u64,
    /// Number of corrupted frames that are a second copy of a frame: another copy is counted as received or corrupted.
    corrupted_copies: u64,
}

impl SequenceCount {
    /// Counts an intact frame; returns true if it is the first with its number.
    pub fn intact(&mut self, number: u64) -> bool {
        if !self.intact.insert(number) {
            self.duplicated += 1;
            return false;
        }
        self.received += 1;
        if self.damaged.contains(number) {
            self.corrupted_copies += 1;
        }
        match self.highest {
            Some(highest) if number < highest => self.reordered += 1,
            _ => self.highest = Some(number),
        }
        true
    }

    /// Adds the counts of an XDP program: the set of numbers that arrived, as a bitmap, and its own counts.
    ///
    /// `beyond`: the highest number that arrived plus 1; 0 if none arrived.
    pub fn take_over(&mut self, numbers: Vec<u64>, duplicated: u64, reordered: u64, beyond: u64) {
        if self.intact.0.len() < numbers.len() {
            self.intact.0.resize(numbers.len(), 0);
        }
        for (index, theirs) in numbers.into_iter().enumerate() {
            let ours = self.intact.0[index];
            self.received += u64::from((theirs & !ours).count_ones());
            self.duplicated += u64::from((theirs & ours).count_ones());
            self.corrupted_copies += u64::from((theirs & !ours & self.damaged.word(index)).count_ones());
            self.intact.0[index] = ours | theirs;
        }
        self.duplicated += duplicated;
        self.reordered += reordered;
        self.highest = self.highest.max(beyond.checked_sub(1));
    }

    /// Counts a damaged frame, with its number if its test header is intact.
    pub fn corrupted(&mut self, number: Option<u64>) {
        self.corrupted += 1;
        if let Some(number) = number {
            if !self.damaged.insert(number) || self.intact.contains(number) {
                self.corrupted_copies += 1;
            }
        }
    }

    /// Returns how many frames arrived, intact or damaged, each counted once.
    pub fn accounted(&self) -> u64 {
        self.received + self.corrupted - self.corrupted_copies
    }

    /// Returns how many of `sent` frames arrived neither intact nor damaged.
    pub fn lost(&self, sent: u64) -> u64 {
        sent.saturating_sub(self.accounted())
    }

    /// Calls `each` with every run of missing numbers below `sent`, in order.
    pub fn missing_runs(&self, sent: u64, mut each: impl FnMut(Run)) {
        let mut first = None;
        let mut number = 0;
        while number < sent {
            let word = (number / 64) as usize;
            let there = self.intact.word(word) | self.damaged.word(word);
            if number % 64 == 0 && sent - number >= 64 && there == u64::MAX && first.is_none() {
                number += 64;
                continue;
            }
            let missing = there & (1 << (number % 64)) == 0;
            match (missing, first) {
                (true, None) => first = Some(number),
                (false, Some(start)) => {
                    each(Run {
                        first: start,
                        last: number - 1,
                    });
                    first = None;
                }
                _ => {}
            }
            number += 1;
        }
        if let Some(start) = first {
            each(Run {
                first: start,
                last: sent - 1,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(numbers: &[u64]) -> SequenceCount {
        let mut count = SequenceCount::default();
        for &number in numbers {
            count.intact(number);
        }
        count
    }

    /// Lost, duplicated and reordered frames are counted apart from each other.
    #[test]
    fn each_fault_is_itself() {
        let count = count(&[0, 1, 1, 4, 3, 5, 5, 5, 7]);
        assert_eq!(
            (count.received, count.duplicated, count.reordered, count.lost(9)),
            (6, 3, 1, 3)
        );
    }

    /// A late duplicate is a duplicate, not a reordered frame.
    #[test]
    fn duplicate_is_not_reordered() {
        assert_eq!(count(&[0, 1, 2, 0]).reordered, 0);
    }

    /// Missing numbers are given as runs, also across the words of the bitmap and at both ends.
    #[test]
    fn missing_numbers_come_as_runs() {
        let mut count = SequenceCount::default();
        for number in (2..60).chain(70..200) {
            count.intact(number);
        }
        count.corrupted(Some(65));
        let mut runs = Vec::new();
        count.missing_runs(203, |run| runs.push((run.first, run.last)));
        assert_eq!(runs, [(0, 1), (60, 64), (66, 69), (200, 202)]);
        assert_eq!(count.lost(203), runs.iter().map(|r| r.1 - r.0 + 1).sum::<u64>());
    }

    /// A frame that arrived both damaged and intact does not hide the loss of another frame.
    #[test]
    fn corrupted_copy_hides_no_loss() {
        let mut count = count(&[0, 1]);
        count.corrupted(Some(1));
        count.corrupted(Some(2));
        count.corrupted(Some(2));
        count.corrupted(None);
        count.intact(2);
        assert_eq!(count.corrupted, 4);
        assert_eq!(count.lost(10), 6);
    }

    /// Two counts are added: a number in both is a duplicate; a frame that arrived damaged and intact counts once.
    #[test]
    fn counts_of_two_come_together() {
        let mut ours = count(&[0, 1]);
        ours.corrupted(Some(5));
        ours.corrupted(Some(7));
        ours.take_over(vec![0b10_0110, 1], 3, 2, 65);
        assert_eq!((ours.received, ours.duplicated, ours.reordered), (5, 4, 2));
        assert_eq!(ours.accounted(), 6); // 0 1 2 5 64, and 7 damaged
        let mut runs = Vec::new();
        ours.missing_runs(66, |run| runs.push((run.first, run.last)));
        assert_eq!(runs, [(3, 4), (6, 6), (8, 63), (65, 65)]);
    }
}
