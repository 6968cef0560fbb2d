// SPDX-License-Identifier: Apache-2.0
//! The arrivals of a stream's intact frames: the first, the last, and the gaps between two.

use crate::protocol::Gap;

/// Largest number of gaps that are listed; the later ones are only counted.
pub const LISTED: usize = 64;

/// The arrivals of one stream.
#[derive(Debug, Clone)]
pub struct Arrivals {
    /// Time of the first arrival; 0 before it.
    pub first_ns: u64,
    pub last_ns: u64,
    pub longest: Option<Gap>,
    /// A gap that is longer than this is listed.
    pub over_ns: u64,
    pub listed: Vec<Gap>,
    /// Number of gaps that are long enough for the list, but not in it.
    pub more: u64,
    /// True if arrivals of two counts were combined: the gaps of the whole stream are not known then.
    pub torn: bool,
}

impl Arrivals {
    /// Starts without arrivals. Gaps longer than `gaps_over_s` seconds are listed; with None, no gap is.
    pub fn new(gaps_over_s: Option<f64>) -> Self {
        Arrivals {
            first_ns: 0,
            last_ns: 0,
            longest: None,
            over_ns: gaps_over_s.map_or(u64::MAX, |over_s| (over_s * 1e9) as u64),
            listed: Vec::new(),
            more: 0,
            torn: false,
        }
    }

    /// Notes an arrival. The time stamps of one port may be slightly out of order.
    pub fn note(&mut self, at_ns: u64) {
        if self.first_ns == 0 {
            (self.first_ns, self.last_ns) = (at_ns, at_ns);
            return;
        }
        let took_ns = at_ns.saturating_sub(self.last_ns);
        let gap = Gap {
            from_ns: self.last_ns,
            to_ns: at_ns.max(self.last_ns),
        };
        if self.longest.is_none_or(|longest| took_ns > longest.ns()) {
            self.longest = Some(gap);
        }
        if took_ns > self.over_ns {
            if self.listed.len() < LISTED {
                self.listed.push(gap);
            } else {
                self.more += 1;
            }
        }
        self.last_ns = self.last_ns.max(at_ns);
    }

    /// Adds the arrivals of another count of the same stream.
    pub fn take_over(&mut self, other: Arrivals) {
        if other.first_ns == 0 {
            return;
        }
        if self.first_ns == 0 {
            *self = other;
            return;
        }
        self.first_ns = self.first_ns.min(other.first_ns);
        self.last_ns = self.last_ns.max(other.last_ns);
        self.torn = true;
    }
}

impl Gap {
    /// Returns the length of the gap.
    pub fn ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn came(over_s: Option<f64>, at: &[u64]) -> Arrivals {
        let mut arrivals = Arrivals::new(over_s);
        at.iter().for_each(|&at_ns| arrivals.note(at_ns));
        arrivals
    }

    /// The longest gap is known even if none is listed; a time stamp out of order neither makes nor hides a gap.
    #[test]
    fn the_longest_gap_is_found() {
        let arrivals = came(None, &[100, 200, 190, 450, 500]);
        assert_eq!((arrivals.first_ns, arrivals.last_ns), (100, 500));
        assert_eq!(
            arrivals.longest,
            Some(Gap {
                from_ns: 200,
                to_ns: 450
            })
        );
        assert!(arrivals.listed.is_empty());
        assert_eq!(came(None, &[7]).longest, None);
    }

    /// Only gaps over the limit are listed, and those that do not fit are counted.
    #[test]
    fn gaps_over_the_limit_are_listed() {
        let arrivals = came(Some(1e-6), &[1_000, 2_000, 3_001, 3_500, 9_000]);
        let listed: Vec<_> = arrivals
            .listed
            .iter()
            .map(|gap| (gap.from_ns, gap.to_ns))
            .collect();
        assert_eq!(listed, [(2_000, 3_001), (3_500, 9_000)]);
        let many: Vec<u64> = (1..=100).map(|n| n * 5_000).collect();
        assert_eq!(came(Some(1e-6), &many).more, 99 - LISTED as u64);
    }

    /// If two counts are combined, the first and the last arrival are known, but the gaps are not.
    #[test]
    fn gaps_of_two_counts_are_not_known() {
        let mut ours = came(None, &[50, 900]);
        ours.take_over(Arrivals::new(None));
        assert!(!ours.torn);
        ours.take_over(came(None, &[10, 400]));
        assert_eq!((ours.first_ns, ours.last_ns, ours.torn), (10, 900, true));
    }
}
