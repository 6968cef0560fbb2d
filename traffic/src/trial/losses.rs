// SPDX-License-Identifier: Apache-2.0
//! The lost frames of a stream: the times at which they left, and the number of them at each of the stream's rates.

use crate::protocol::{LossEpisode, StepResult, Stream};
use crate::receive::stream_count::StreamCount;
use crate::send::report::SendReport;

/// Largest number of episodes that are listed; the later ones are only counted.
const EPISODES: usize = 1000;

/// The lost frames of one stream.
#[derive(Debug, Default)]
pub struct Losses {
    pub listed: Vec<LossEpisode>,
    pub more: u64,
    pub first_ns: Option<u64>,
    pub last_ns: Option<u64>,
    /// Number of lost frames at each rate.
    by_step: Vec<u64>,
}

/// Finds the lost frames of a stream. `parts` has the report of each CPU that sent it, and the count of what arrived.
pub fn of(parts: &[(&SendReport, &StreamCount)]) -> Losses {
    let mut found = Losses::default();
    for (report, came) in parts {
        let stretches = report.schedule.stretches();
        found.by_step.resize(stretches.len(), 0);
        let mut listed = 0;
        came.sequence.missing_runs(report.sent, |run| {
            let (from_ns, to_ns) = (report.sent_at(run.first), report.sent_at(run.last));
            found.first_ns = Some(found.first_ns.map_or(from_ns, |first_ns| first_ns.min(from_ns)));
            found.last_ns = Some(found.last_ns.map_or(to_ns, |last_ns| last_ns.max(to_ns)));
            for (step, lost) in found.by_step.iter_mut().enumerate() {
                let end = stretches.get(step + 1).map_or(u64::MAX, |next| next.first);
                *lost += end
                    .min(run.last + 1)
                    .saturating_sub(stretches[step].first.max(run.first));
            }
            if listed < EPISODES {
                listed += 1;
                found.listed.push(LossEpisode {
                    from_ns,
                    to_ns,
                    frames: run.last - run.first + 1,
                });
            } else {
                found.more += 1;
            }
        });
    }
    found.listed.sort_by_key(|episode| episode.from_ns);
    found.more += found.listed.len().saturating_sub(EPISODES) as u64;
    found.listed.truncate(EPISODES);
    found
}

impl Losses {
    /// Removes what is known of single lost frames, for trials in which it is not known which of the missing frames the
    /// DUT lost, and which never left. Else a pause of the sender, in which frames never left, would excuse losses of
    /// the DUT. The episodes are still counted, as those that are not listed.
    pub fn forget(&mut self) {
        (self.first_ns, self.last_ns) = (None, None);
        self.more += self.listed.len() as u64;
        self.listed.clear();
    }

    /// Returns the figures of each of the stream's rates; an empty list without steps. `known`: it is known which
    /// frames are lost.
    pub fn steps(
        &self,
        stream: &Stream,
        parts: &[(&SendReport, &StreamCount)],
        start_ns: u64,
        known: bool,
    ) -> Vec<StepResult> {
        let Some(rate_fps) = stream.rate_fps.filter(|_| !stream.steps.is_empty()) else {
            return Vec::new();
        };
        let rates = [(0.0, rate_fps)]
            .into_iter()
            .chain(stream.steps.iter().map(|step| (step.at_s, step.rate_fps)));
        rates
            .enumerate()
            .map(|(step, (at_s, rate_fps))| {
                let within = |until: &dyn Fn(&SendReport) -> u64| -> u64 {
                    parts
                        .iter()
                        .map(|(report, _)| {
                            let stretches = report.schedule.stretches();
                            let end = stretches.get(step + 1).map_or(u64::MAX, |next| next.first);
                            end.min(until(report)).saturating_sub(stretches[step].first)
                        })
                        .sum()
                };
                StepResult {
                    at_ns: start_ns + (at_s * 1e9) as u64,
                    rate_fps,
                    intended_frames: within(&|report| report.planned.unwrap_or(0)),
                    tx_frames: within(&|report| report.sent),
                    lost: known.then(|| self.by_step.get(step).copied().unwrap_or(0)),
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No episode may excuse a loss if it is not known which frames are lost; their number stays known.
    #[test]
    fn forgotten_losses_are_counted() {
        let episode = |from_ns| LossEpisode {
            from_ns,
            to_ns: from_ns + 5,
            frames: 3,
        };
        let mut losses = Losses {
            listed: vec![episode(10), episode(20)],
            more: 4,
            first_ns: Some(10),
            last_ns: Some(25),
            by_step: vec![6],
        };
        losses.forget();
        assert!(losses.listed.is_empty());
        assert_eq!((losses.more, losses.first_ns, losses.last_ns), (6, None, None));
    }
}
