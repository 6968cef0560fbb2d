// SPDX-License-Identifier: Apache-2.0
//! The sizes of a mix of frames: a repeating cycle in which each size is spread evenly.

use crate::failure::{Failure, Outcome};
use crate::protocol::FrameShare;

const LONGEST_CYCLE: u64 = 65_536;
const MOST_SHARES: usize = 4096;

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

/// Returns the order of the frames of one cycle, as indexes into `shares` (smooth weighted round robin). The order is
/// always the same, and spreads each size evenly.
pub fn cycle(shares: &[FrameShare]) -> Outcome<Vec<u16>> {
    if shares.is_empty() || shares.len() > MOST_SHARES || shares.iter().any(|share| share.weight == 0) {
        return Err(Failure::new(
            "frames: expected 1 to 4096 sizes, each with a weight of at least 1",
            "give for example [{\"size\":64,\"weight\":7},{\"size\":594,\"weight\":4},{\"size\":1518,\"weight\":1}]",
        ));
    }
    let divisor = shares.iter().fold(0, |divisor, share| {
        greatest_common_divisor(divisor, share.weight.into())
    });
    let total: u64 = shares.iter().map(|share| u64::from(share.weight)).sum::<u64>() / divisor;
    if total > LONGEST_CYCLE {
        return Err(Failure::new(
            format!(
                "frames: the weights make a cycle of {total} frames, at most {LONGEST_CYCLE} are supported"
            ),
            "use smaller weights",
        ));
    }
    let mut credit = vec![0i64; shares.len()];
    let mut order = Vec::with_capacity(total as usize);
    for _ in 0..total {
        let mut richest = 0;
        for (index, share) in shares.iter().enumerate() {
            credit[index] += (u64::from(share.weight) / divisor) as i64;
            if credit[index] > credit[richest] {
                richest = index;
            }
        }
        credit[richest] -= total as i64;
        order.push(richest as u16);
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(weights: &[u32]) -> Vec<FrameShare> {
        weights
            .iter()
            .map(|&weight| FrameShare {
                size: 64,
                weight,
                header: 0,
            })
            .collect()
    }

    /// The simple IMIX 7:4:1 keeps its proportions, and the most frequent size never appears three times in a row.
    #[test]
    fn proportions_hold_and_sizes_are_spread() {
        let order = cycle(&shares(&[7, 4, 1])).unwrap();
        assert_eq!(
            [0, 1, 2].map(|i| order.iter().filter(|&&x| x == i).count()),
            [7, 4, 1]
        );
        let twice: Vec<u16> = order.iter().chain(&order).copied().collect();
        assert!(!twice.windows(3).any(|w| w == [0, 0, 0]), "{order:?}");
    }

    /// Weights are reduced first, so that 700:400:100 is 7:4:1.
    #[test]
    fn common_divisor_is_taken_out() {
        assert_eq!(cycle(&shares(&[700, 400, 100])), cycle(&shares(&[7, 4, 1])));
    }

    /// A zero weight and an empty list are errors.
    #[test]
    fn nonsense_is_refused() {
        assert!(cycle(&shares(&[1, 0])).is_err());
        assert!(cycle(&[]).is_err());
        assert!(cycle(&shares(&[65_537, 1])).is_err());
    }
}
