// SPDX-License-Identifier: Apache-2.0
//! The result of a trial, as the controller gets it.

use std::collections::BTreeMap;

use serde::Serialize;

/// The result of a trial.
#[derive(Debug, Serialize)]
pub struct TrialResult {
    pub id: String,
    /// Time at which the first frame was due.
    pub start_ns: u64,
    /// Time at which the last send of any stream returned.
    pub last_tx_ns: u64,
    /// Time spent sending, s, the last frame's interval included: offered load = tx_frames / duration_s. It is longer
    /// than intended where the sender was held up, or is too slow (send/pace.rs, `deadline_ns`).
    pub duration_s: f64,
    pub intended_duration_s: f64,
    pub streams: Vec<StreamResult>,
    pub noise: Vec<NoiseResult>,
    pub ports: Vec<PortResult>,
    /// Errors of the links between guests, in virtual time.
    pub between: Vec<LinkErrors>,
    pub host_stalls: Vec<HostStall>,
    pub host_stall_ms_total: BTreeMap<String, f64>,
    /// Number of host stalls that are not listed, because there were too many.
    pub host_stalls_more: u64,
    /// Sum of the lengths of these stalls.
    pub host_stalls_more_ms: f64,
    /// False if a watcher was not alone on its CPU, so that host_stalls may be its own waits for others.
    pub stalls_watched: bool,
    /// CPU time of the sending and of the receiving threads, and how long they waited for a CPU, ms.
    pub senders_run_ms: f64,
    pub senders_wait_ms: f64,
    pub receivers_run_ms: f64,
    pub receivers_wait_ms: f64,
    /// Step of the wall clock during the trial. Unless it is 0, latencies are void.
    pub clock_step_ns: i64,
    pub stopped_early: bool,
    /// Reason why not all frames could be sent, where more is known than that time was short.
    pub shortfall: String,
    /// Reasons why nothing of this trial can be believed.
    pub faults: Vec<String>,
    /// Warnings that hold for every figure of this trial, in the same words each time.
    pub warnings: Vec<String>,
    pub notes: Vec<String>,
}

/// The sending of one noise.
#[derive(Debug, Serialize)]
pub struct NoiseResult {
    pub id: u16,
    pub from: String,
    /// These fields mean the same as a stream's.
    pub intended_frames: Option<u64>,
    pub tx_frames: u64,
    pub tx_refused: u64,
    pub unsent: u64,
    pub duration_s: f64,
    pub departure_fps: Option<f64>,
}

/// The sending and arriving of one stream.
#[derive(Debug, Serialize)]
pub struct StreamResult {
    pub id: u16,
    pub from: String,
    pub to: String,
    /// Frames the schedule asked for. Null when flooding.
    pub intended_frames: Option<u64>,
    /// Frames the interface took or, on veth and tap, dropped at the next device's full ring.
    pub tx_frames: u64,
    /// Number of tx_frames that the next device's ring refused at once (the first loss on the path).
    pub tx_refused: u64,
    /// Frames planned, but not sent: the trial had come to its longest time, or the port's driver had no room for them.
    pub unsent: u64,
    /// Number of times that the interface had no room and the frame was offered again.
    pub tx_retries: u64,
    /// This stream's own sending time, s.
    pub duration_s: f64,
    /// Rate at which the frames really left, from the first to the last: intervals / time between. Null for one frame.
    pub departure_fps: Option<f64>,
    /// Frames that arrived intact, each counted once.
    pub rx_frames: u64,
    /// Frames lost: tx − rx − corrupted. A corrupted copy of a frame that is already counted is not subtracted again.
    pub lost: u64,
    pub duplicated: u64,
    /// Frames with a sequence number lower than one that came before (RFC 4737).
    pub reordered: u64,
    pub corrupted: u64,
    /// Intact frames that arrived after the last one was sent.
    pub rx_after_stop: u64,
    /// Time from the last send to the last arrival, s.
    pub drain_s: f64,
    pub latency_us: Option<Latency>,
    /// The frame of tag_at_s. Null unless that was given and a frame left then.
    pub tagged: Option<Tagged>,
    pub slices: Vec<Slice>,
    /// One entry for each rate, the first one too. Empty without steps.
    pub steps: Vec<StepResult>,
    /// Times at which the first and the last of the lost frames left, whether their episodes are listed or not. Null
    /// if none is lost, and if frames never left the port, because nobody knows which ones.
    pub first_lost_ns: Option<u64>,
    pub last_lost_ns: Option<u64>,
    pub loss_episodes: Vec<LossEpisode>,
    pub loss_episodes_more: u64,
    /// Times at which the first and the last intact frame arrived. Null if none did.
    pub first_rx_ns: Option<u64>,
    pub last_rx_ns: Option<u64>,
    /// Longest time between two arrivals of intact frames. Null with fewer than two.
    pub longest_gap: Option<Gap>,
    /// The first 64 of the times without arrivals that are longer than gaps_over_s.
    pub gaps: Vec<Gap>,
    pub gaps_more: u64,
    /// Frames sent more than 100 µs after they were due.
    pub late_frames: u64,
    pub lateness_us: Option<Lateness>,
    pub tx_stalls: Vec<TxStall>,
    /// Number of stalls that are not listed, because there were too many.
    pub tx_stalls_more: u64,
    /// Sum of the lengths of these stalls, each from at_ns to until_ns.
    pub tx_stalls_more_ms: f64,
    /// True if its packets were sealed before the trial. Null if it left in clear.
    pub sealed_before: Option<bool>,
}

/// Latency, µs, from the moment the batch was handed to the sending interface to the receiving interface's stamp.
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
    /// Time at which it left.
    pub at_ns: u64,
    /// Exact to the nanosecond. Null if the frame was lost or damaged.
    pub latency_us: Option<f64>,
}

/// The frames due at one of the rates of a stream.
#[derive(Debug, Serialize, PartialEq)]
pub struct StepResult {
    pub at_ns: u64,
    pub rate_fps: f64,
    pub intended_frames: u64,
    pub tx_frames: u64,
    /// Is null if frames never left the port, as with first_lost_ns.
    pub lost: Option<u64>,
}

/// The time from one arrival to the next.
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

/// Lateness of the frames when they left, µs.
#[derive(Debug, Serialize)]
pub struct Lateness {
    pub p50: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// A stall of a sender: it did not run for more than 500 µs. Tells since when, for how long in all until it had made
/// that good, and when it had. A sender that is too slow has no stall.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct TxStall {
    pub at_ns: u64,
    pub ms: f64,
    /// Frames that left from at_ns to here were late, or followed each other faster than intended.
    pub until_ns: u64,
}

/// The arrivals at one port, whatever stream they belong to.
#[derive(Debug, Clone, Serialize)]
pub struct PortResult {
    pub name: String,
    /// Frames the tester's own receive ring had no room for.
    pub rx_overrun: u64,
    /// Frames that do not belong to this trial.
    pub foreign: u64,
    pub rx_total: u64,
    /// Frames longer than any the streams send: the interface merged them (GRO). They count as corrupted.
    pub merged: u64,
    /// Is null if all streams come in clear.
    pub esp: Option<EspCounts>,
    /// Counts of the port's link, and of the gateway at it, in virtual time; null elsewhere.
    pub link: Option<LinkCounts>,
}

/// Frames of a link in virtual time that met with an error, of both directions.
#[derive(Debug, Clone, Default, Serialize, PartialEq, Eq)]
pub struct LinkErrors {
    pub lost: u64,
    pub damaged: u64,
    pub late: u64,
}

/// Counts of a port's link in virtual time, and bytes that the gateway at its other end moved.
#[derive(Debug, Clone, Default, Serialize, PartialEq, Eq)]
pub struct LinkCounts {
    #[serde(flatten)]
    pub errors: LinkErrors,
    /// Bytes that the gateway's devices moved over its memory's bus: Ethernet reading and writing with descriptors, and
    /// frames alone.
    pub port_read: u64,
    pub port_written: u64,
    pub port_frame_read: u64,
    pub port_frame_written: u64,
    /// Bytes that its security engine read and wrote, and the requests it completed.
    pub sec_read: u64,
    pub sec_written: u64,
    pub sec_descriptors: u64,
}

/// The packets that came through the SAs of a port. Each is counted once, in the first of these that is true of it.
#[derive(Debug, Clone, Default, Serialize, PartialEq, Eq)]
pub struct EspCounts {
    /// ESP packets with an SPI of ours and our addresses.
    pub packets: u64,
    /// Number of these with a right ICV and trailer.
    pub authentic: u64,
    pub bad_icv: u64,
    /// Fragments, wrong addresses, wrong padding, lengths that cannot be.
    pub malformed: u64,
    pub unknown_spi: u64,
    /// Frames of streams to be opened that came in clear.
    pub cleartext: u64,
    /// Authentic packets with a number that came before in this trial.
    pub repeated: u64,
    /// Authentic packets with a number not higher than those of earlier trials.
    pub old: u64,
    /// Authentic and new packets that came after a higher number.
    pub not_rising: u64,
    /// Numbers between the lowest and the highest that never came: lost after they were encrypted.
    pub gaps: u64,
    /// Is true if packets were opened after the trial.
    pub opened_after: bool,
}

/// A time for which a CPU of the host stood still.
#[derive(Debug, Clone, Serialize)]
pub struct HostStall {
    pub cpu: usize,
    pub at_ns: u64,
    pub ms: f64,
}
