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
    /// Time spent sending, the last frame's interval included: offered load = tx_frames / duration_s.
    pub duration_s: f64,
    pub intended_duration_s: f64,
    pub streams: Vec<StreamResult>,
    pub noise: Vec<NoiseResult>,
    pub ports: Vec<PortResult>,
    pub host_stalls: Vec<HostStall>,
    pub host_stall_ms_total: BTreeMap<String, f64>,
    /// Host stalls not listed, because there were too many.
    pub host_stalls_more: u64,
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
    /// Planned, but not sent before the deadline.
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

/// The sender ran late by more than 500 µs: since when, and how late it got.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct TxStall {
    pub at_ns: u64,
    pub ms: f64,
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
