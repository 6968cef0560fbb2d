// SPDX-License-Identifier: Apache-2.0
//! What a trial tells.

use std::collections::BTreeMap;

use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct TrialResult {
    pub id: String,
    /// When the first frame was due.
    pub start_ns: u64,
    /// When the last send of any stream returned.
    pub last_tx_ns: u64,
    /// Time spent sending, the last frame's interval included: offered load = tx_frames / duration_s. Longer than
    /// intended where the sender was held up, or is too slow (trial.rs, `deadline_ns`).
    pub duration_s: f64,
    pub intended_duration_s: f64,
    pub streams: Vec<StreamResult>,
    pub noise: Vec<NoiseResult>,
    pub ports: Vec<PortResult>,
    pub host_stalls: Vec<HostStall>,
    pub host_stall_ms_total: BTreeMap<String, f64>,
    /// Host stalls not listed, because there were too many.
    pub host_stalls_more: u64,
    /// False: a watcher was not alone on its CPU, so that host_stalls may be its own waits for others.
    pub stalls_watched: bool,
    /// CPU time of the sending and of the receiving threads, and how long they waited for a CPU, ms.
    pub senders_run_ms: f64,
    pub senders_wait_ms: f64,
    pub receivers_run_ms: f64,
    pub receivers_wait_ms: f64,
    /// How far the wall clock was stepped during the trial; not 0: latencies are void.
    pub clock_step_ns: i64,
    pub stopped_early: bool,
    /// Why not all frames could be sent, where more is known than that time was short.
    pub shortfall: String,
    /// Why nothing of this trial can be believed.
    pub faults: Vec<String>,
    /// What holds for any figure drawn from this trial, in the same words each time.
    pub warnings: Vec<String>,
    pub notes: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct NoiseResult {
    pub id: u16,
    pub from: String,
    /// These as a stream's.
    pub intended_frames: Option<u64>,
    pub tx_frames: u64,
    pub tx_refused: u64,
    pub unsent: u64,
    pub duration_s: f64,
    pub departure_fps: Option<f64>,
}

#[derive(Debug, Serialize)]
pub struct StreamResult {
    pub id: u16,
    pub from: String,
    pub to: String,
    /// Frames the schedule asked for; null when flooding.
    pub intended_frames: Option<u64>,
    /// Frames the interface took or, on veth and tap, dropped at the next device's full ring.
    pub tx_frames: u64,
    /// Frames of tx_frames that the next device's ring refused at once (the first loss on the path).
    pub tx_refused: u64,
    /// Planned, but not sent: the trial had come to its longest time, or the port's driver had no room for them.
    pub unsent: u64,
    /// Times the interface had no room and the frame was offered again.
    pub tx_retries: u64,
    /// This stream's own sending time, s.
    pub duration_s: f64,
    /// How fast the frames really left, from the first to the last: intervals / time between; null for one frame.
    pub departure_fps: Option<f64>,
    /// Frames that arrived intact, each counted once.
    pub rx_frames: u64,
    /// tx − rx − corrupted; a corrupted copy of a frame that is already counted is not subtracted again.
    pub lost: u64,
    pub duplicated: u64,
    /// Frames with a sequence number lower than one that came before (RFC 4737).
    pub reordered: u64,
    pub corrupted: u64,
    /// Intact frames that arrived after the last one was sent.
    pub rx_after_stop: u64,
    /// From the last send to the last arrival, s.
    pub drain_s: f64,
    pub latency_us: Option<Latency>,
    /// Null unless tag_at_s was given and a frame left then.
    pub tagged: Option<Tagged>,
    pub slices: Vec<Slice>,
    /// Rate by rate, the first one too; empty without steps.
    pub steps: Vec<StepResult>,
    /// When the first and the last of the lost frames left, whether their episodes are listed or not; null if none
    /// is lost, and if frames never left the port: which ones is not known.
    pub first_lost_ns: Option<u64>,
    pub last_lost_ns: Option<u64>,
    pub loss_episodes: Vec<LossEpisode>,
    pub loss_episodes_more: u64,
    /// When the first and the last intact frame arrived; null if none did.
    pub first_rx_ns: Option<u64>,
    pub last_rx_ns: Option<u64>,
    /// The longest time between two arrivals of intact frames; null with fewer than two.
    pub longest_gap: Option<Gap>,
    /// Of those longer than gaps_over_s the first 64.
    pub gaps: Vec<Gap>,
    pub gaps_more: u64,
    /// Frames sent more than 100 µs after they were due.
    pub late_frames: u64,
    pub lateness_us: Option<Lateness>,
    pub tx_stalls: Vec<TxStall>,
    pub tx_stalls_more: u64,
    /// Whether its packets were sealed before the trial; null: it left in clear.
    pub sealed_before: Option<bool>,
}

/// From the batch being handed to the sending interface to the receiving interface's stamp.
#[derive(Debug, Serialize)]
pub struct Latency {
    pub min: f64,
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
    /// The whole histogram in nanoseconds: HdrHistogram V2, compressed, base64.
    pub hdr: String,
}

/// Latency of the frames *sent* in one twentieth of the intended duration.
#[derive(Debug, Serialize)]
pub struct Slice {
    pub t_s: f64,
    pub rx_frames: u64,
    pub min_us: Option<f64>,
    pub mean_us: Option<f64>,
}

/// The frame of tag_at_s.
#[derive(Debug, Serialize, PartialEq)]
pub struct Tagged {
    /// When it left.
    pub at_ns: u64,
    /// To the nanosecond; null: it was lost or damaged.
    pub latency_us: Option<f64>,
}

/// The frames due at one of the rates of a stream.
#[derive(Debug, Serialize, PartialEq)]
pub struct StepResult {
    pub at_ns: u64,
    pub rate_fps: f64,
    pub intended_frames: u64,
    pub tx_frames: u64,
    /// As first_lost_ns: null if frames never left the port.
    pub lost: Option<u64>,
}

/// From one arrival to the next.
#[derive(Debug, Clone, Copy, Serialize, PartialEq, Eq)]
pub struct Gap {
    pub from_ns: u64,
    pub to_ns: u64,
}

/// A run of consecutive sequence numbers that never came, placed by when they were sent.
#[derive(Debug, Serialize, PartialEq)]
pub struct LossEpisode {
    pub from_ns: u64,
    pub to_ns: u64,
    pub frames: u64,
}

#[derive(Debug, Serialize)]
pub struct Lateness {
    pub p50: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// The sender did not run for more than 500 µs: since when, for how long in all until it had made that good, and
/// when it had. Being too slow is no stall.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct TxStall {
    pub at_ns: u64,
    pub ms: f64,
    /// The frames from at_ns to here were late, or followed each other faster than intended.
    pub until_ns: u64,
}

#[derive(Debug, Clone, Serialize)]
pub struct PortResult {
    pub name: String,
    /// Frames the tester's own receive ring had no room for.
    pub rx_overrun: u64,
    /// Frames that are not this trial's.
    pub foreign: u64,
    pub rx_total: u64,
    /// Frames longer than any the streams send: the interface merged them (GRO). They count as corrupted.
    pub merged: u64,
    /// Null where all streams come in clear.
    pub esp: Option<EspCounts>,
}

/// What the SAs of a port have said. Packets are counted once in the first of these that is true of them.
#[derive(Debug, Clone, Default, Serialize, PartialEq, Eq)]
pub struct EspCounts {
    /// ESP with an SPI of ours and our addresses.
    pub packets: u64,
    /// Of these, with a right ICV and trailer.
    pub authentic: u64,
    pub bad_icv: u64,
    /// Fragments, wrong addresses, wrong padding, lengths that cannot be.
    pub malformed: u64,
    pub unknown_spi: u64,
    /// Frames of streams to be opened that came in clear.
    pub cleartext: u64,
    /// Authentic, but with a number that came before in this trial.
    pub repeated: u64,
    /// Authentic, but with a number not higher than those of trials before.
    pub old: u64,
    /// Authentic and new, but after a higher number.
    pub not_rising: u64,
    /// Numbers between the lowest and the highest that never came: lost after they were encrypted.
    pub gaps: u64,
    /// Whether packets were opened after the trial.
    pub opened_after: bool,
}

#[derive(Debug, Clone, Serialize)]
pub struct HostStall {
    pub cpu: usize,
    pub at_ns: u64,
    pub ms: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Event;

    /// A result with everything in it. A field that is added here must be told to the controller, too: the file is
    /// also read by tests/unit/test_generator_fields.py.
    fn whole() -> TrialResult {
        let latency = Latency {
            min: 1.0,
            mean: 2.0,
            p50: 2.0,
            p90: 3.0,
            p99: 4.0,
            p999: 5.0,
            max: 6.0,
            hdr: "HISTFAAAAA".into(),
        };
        let gap = Gap {
            from_ns: 1_200,
            to_ns: 1_300,
        };
        let stream = StreamResult {
            id: 0,
            from: "west".into(),
            to: "east".into(),
            intended_frames: Some(100),
            tx_frames: 99,
            tx_refused: 1,
            unsent: 1,
            tx_retries: 2,
            duration_s: 1.25,
            departure_fps: Some(80.5),
            rx_frames: 90,
            lost: 8,
            duplicated: 1,
            reordered: 2,
            corrupted: 1,
            rx_after_stop: 3,
            drain_s: 0.5,
            latency_us: Some(latency),
            tagged: Some(Tagged {
                at_ns: 1_100,
                latency_us: Some(2.5),
            }),
            slices: vec![Slice {
                t_s: 0.0,
                rx_frames: 90,
                min_us: Some(1.0),
                mean_us: Some(2.0),
            }],
            steps: vec![StepResult {
                at_ns: 1_000,
                rate_fps: 100.0,
                intended_frames: 100,
                tx_frames: 99,
                lost: Some(8),
            }],
            first_lost_ns: Some(1_150),
            last_lost_ns: Some(1_160),
            loss_episodes: vec![LossEpisode {
                from_ns: 1_150,
                to_ns: 1_160,
                frames: 8,
            }],
            loss_episodes_more: 1,
            first_rx_ns: Some(1_010),
            last_rx_ns: Some(1_900),
            longest_gap: Some(gap),
            gaps: vec![gap],
            gaps_more: 1,
            late_frames: 5,
            lateness_us: Some(Lateness {
                p50: 1.0,
                p99: 2.0,
                p999: 3.0,
                max: 4.0,
            }),
            tx_stalls: vec![TxStall {
                at_ns: 1_170,
                ms: 1.5,
                until_ns: 1_180,
            }],
            tx_stalls_more: 1,
            sealed_before: Some(true),
        };
        TrialResult {
            id: "0".into(),
            start_ns: 1_000,
            last_tx_ns: 2_000,
            duration_s: 1.25,
            intended_duration_s: 1.0,
            streams: vec![stream],
            noise: vec![NoiseResult {
                id: 1,
                from: "west".into(),
                intended_frames: Some(10),
                tx_frames: 9,
                tx_refused: 1,
                unsent: 1,
                duration_s: 1.0,
                departure_fps: Some(10.0),
            }],
            ports: vec![PortResult {
                name: "west".into(),
                rx_overrun: 1,
                foreign: 2,
                rx_total: 100,
                merged: 1,
                esp: Some(EspCounts::default()),
            }],
            host_stalls: vec![HostStall {
                cpu: 0,
                at_ns: 1_170,
                ms: 1.5,
            }],
            host_stall_ms_total: BTreeMap::from([("0".into(), 1.5)]),
            host_stalls_more: 1,
            stalls_watched: false,
            senders_run_ms: 1.0,
            senders_wait_ms: 2.0,
            receivers_run_ms: 3.0,
            receivers_wait_ms: 4.0,
            clock_step_ns: 5,
            stopped_early: true,
            shortfall: "why frames are unsent".into(),
            faults: vec!["why nothing can be believed".into()],
            warnings: vec!["what holds for each figure".into()],
            notes: vec!["what else was noticed".into()],
        }
    }

    #[test]
    fn the_controller_knows_every_field() {
        let told = serde_json::to_value(Event::Trial(Box::new(whole()))).unwrap();
        let known: serde_json::Value = serde_json::from_str(include_str!("trial_result.json")).unwrap();
        assert_eq!(
            told, known,
            "write this into protocol/trial_result.json:\n{told:#}"
        );
    }
}
