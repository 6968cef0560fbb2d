// SPDX-License-Identifier: Apache-2.0
//! Histograms of nanoseconds, reported in microseconds and as a whole (HdrHistogram V2).

use base64::Engine;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

use crate::failure::{Failure, Outcome};
use crate::protocol::{Latency, Lateness};

/// Number of slots of a histogram.
pub const SLOTS: usize = 28_672;
/// Longest time with a slot of its own; longer times count as this one.
const LONGEST_NS: u64 = 100_000_000_000;

/// Makes an empty histogram from 1 ns to 100 s with three significant digits.
pub fn histogram() -> Outcome<Histogram<u64>> {
    Histogram::new_with_bounds(1, LONGEST_NS, 3)
        .map_err(|error| Failure::new(format!("histogram: {error}"), ""))
}

/// Returns the shortest time, ns, of the slot with this index. The crate has 2,048 slots of 1 ns, then 1,024 slots for
/// each doubling.
fn value_of_slot(slot: usize) -> u64 {
    let (bucket, sub) = ((slot >> 10) as u64, (slot & 1023) as u64);
    if bucket == 0 {
        sub
    } else {
        (sub + 1024) << (bucket - 1)
    }
}

/// Adds the counts of all slots, as XDP programs keep them.
pub fn take_slots(histogram: &mut Histogram<u64>, count_of: impl Fn(usize) -> u64) {
    for slot in 0..SLOTS {
        let count = count_of(slot);
        if count > 0 {
            let _ = histogram.record_n(value_of_slot(slot), count); // cannot fail: the value is within bounds
        }
    }
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// Returns the figures of a histogram of latencies; None if nothing was recorded.
pub fn latency(histogram: &Histogram<u64>) -> Outcome<Option<Latency>> {
    if histogram.is_empty() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .map_err(|error| Failure::new(format!("writing the latency histogram: {error}"), ""))?;
    Ok(Some(Latency {
        min: us(histogram.min()),
        mean: histogram.mean() / 1e3,
        p50: us(histogram.value_at_quantile(0.5)),
        p90: us(histogram.value_at_quantile(0.9)),
        p99: us(histogram.value_at_quantile(0.99)),
        p999: us(histogram.value_at_quantile(0.999)),
        max: us(histogram.max()),
        hdr: base64::engine::general_purpose::STANDARD.encode(bytes),
    }))
}

/// Returns the figures of a histogram of lateness; None if nothing was recorded.
pub fn lateness(histogram: &Histogram<u64>) -> Option<Lateness> {
    (!histogram.is_empty()).then(|| Lateness {
        p50: us(histogram.value_at_quantile(0.5)),
        p99: us(histogram.value_at_quantile(0.99)),
        p999: us(histogram.value_at_quantile(0.999)),
        max: us(histogram.max()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time of each slot falls into the same slot of the crate, so counts of XDP programs keep their places.
    #[test]
    fn slots_are_the_crates_own() {
        let mut histogram = histogram().unwrap();
        for slot in 1..SLOTS {
            let value = value_of_slot(slot);
            if value > LONGEST_NS {
                break;
            }
            histogram.record(value).unwrap();
            assert_eq!(histogram.count_at(value), 1, "slot {slot}");
            assert_eq!(histogram.lowest_equivalent(value), value, "slot {slot}");
        }
        assert!(histogram.len() > 26_000);
    }
}
