// SPDX-License-Identifier: Apache-2.0
//! The result of a trial, as the controller receives it.

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
    /// Time spent sending, s, with the interval of the last frame: offered load = tx_frames / duration_s. It is longer
    /// than intended if the sender was held up or is too slow (send/pace.rs, `deadline_ns`).
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
    /// False if a watcher had no priority over other threads, so that host_stalls may contain its waits for them.
    pub stalls_watched: bool,
    /// The speed, while frames were sent, of each watched CPU on which no thread of the generator sends or receives.
    pub cpu_speed: BTreeMap<String, CpuSpeed>,
    /// CPU time of the sending and of the receiving threads, and the time that they waited for a CPU, ms.
    pub senders_run_ms: f64,
    pub senders_wait_ms: f64,
    pub receivers_run_ms: f64,
    pub receivers_wait_ms: f64,
    /// Step of the wall clock during the trial. If it is not 0, the latencies are not valid.
    pub clock_step_ns: i64,
    pub stopped_early: bool,
    /// Reason, known before the trial, why not all frames could be sent; empty if there is none.
    pub shortfall: String,
    /// Reasons why no figure of this trial is valid.
    pub faults: Vec<String>,
    /// Warnings that apply to every figure of this trial, in the same words in each trial.
    pub warnings: Vec<String>,
    pub notes: Vec<String>,
    /// Names of what could not be measured, in the same words in each trial.
    pub not_measured: Vec<String>,
}

/// The figures of one noise.
#[derive(Debug, Serialize)]
pub struct NoiseResult {
    pub id: u16,
    pub from: String,
    /// This field and those below have the same meaning as those of a stream.
    pub intended_frames: Option<u64>,
    pub tx_frames: u64,
    pub tx_refused: u64,
    pub unsent: u64,
    pub duration_s: f64,
    pub departure_fps: Option<f64>,
}

/// The figures of one stream.
#[derive(Debug, Serialize)]
pub struct StreamResult {
    pub id: u16,
    pub from: String,
    pub to: String,
    /// Number of frames in the schedule. Null for a flood.
    pub intended_frames: Option<u64>,
    /// Frames that the interface took, with those that the next device's full ring then dropped (veth and tap).
    pub tx_frames: u64,
    /// Number of tx_frames that the next device's full ring dropped at once (the first loss on the path).
    pub tx_refused: u64,
    /// Frames planned, but not sent: the trial reached its longest time, or the port's driver had no room for them.
    pub unsent: u64,
    /// Number of times that the interface had no room and the frame was offered again.
    pub tx_retries: u64,
    /// Time spent sending this stream, s.
    pub duration_s: f64,
    /// Actual rate from the first departure to the last: number of intervals / time between. Null for fewer than two
    /// frames.
    pub departure_fps: Option<f64>,
    /// Frames that arrived intact, each counted once.
    pub rx_frames: u64,
    /// Frames lost: tx − rx − corrupted. Corrupted copies of frames that are counted already are not subtracted again.
    pub lost: u64,
    pub duplicated: u64,
    /// Frames with a sequence number lower than one that arrived before (RFC 4737). Null for several flows that arrive
    /// by several queues of the port, because the tester reads the queues side by side.
    pub reordered: Option<u64>,
    pub corrupted: u64,
    /// Intact frames that arrived after the last one was sent.
    pub rx_after_stop: u64,
    /// Time from the last send to the last arrival, s.
    pub drain_s: f64,
    pub latency_us: Option<Latency>,
    /// The frame of tag_at_s. Null if tag_at_s was not given, or if no frame left at that time or later.
    pub tagged: Option<Tagged>,
    pub slices: Vec<Slice>,
    /// One entry for each rate, including the first. Empty without steps.
    pub steps: Vec<StepResult>,
    /// Times at which the first and the last of the lost frames left, also of episodes that are not listed. Null if no
    /// frame is lost, or if frames never left the port, because it is not known which ones.
    pub first_lost_ns: Option<u64>,
    pub last_lost_ns: Option<u64>,
    pub loss_episodes: Vec<LossEpisode>,
    pub loss_episodes_more: u64,
    /// Times at which the first and the last intact frame arrived. Null if no intact frame arrived.
    pub first_rx_ns: Option<u64>,
    pub last_rx_ns: Option<u64>,
    /// Longest time between two successive arrivals of intact frames. Null if fewer than two arrived, or if the gaps
    /// are not known.
    pub longest_gap: Option<Gap>,
    /// The first 64 of the gaps between arrivals that are longer than gaps_over_s.
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
    /// True if its packets were sealed before the trial. Null if the stream left in clear.
    pub sealed_before: Option<bool>,
}

/// Latency, µs: from the time at which the batch was handed to the sending interface to the receive time stamp.
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

/// Latency of the frames that were *sent* in one twentieth of the intended duration.
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
    /// Latency, not rounded to a slot of a histogram. Null if the frame was lost or damaged.
    pub latency_us: Option<f64>,
}

/// The frames due at one of the rates of a stream.
#[derive(Debug, Serialize, PartialEq)]
pub struct StepResult {
    pub at_ns: u64,
    pub rate_fps: f64,
    pub intended_frames: u64,
    pub tx_frames: u64,
    /// Null if frames never left the port, as for first_lost_ns.
    pub lost: Option<u64>,
}

/// The time from one arrival of a stream to the next.
#[derive(Debug, Clone, Copy, Serialize, PartialEq, Eq)]
pub struct Gap {
    pub from_ns: u64,
    pub to_ns: u64,
}

/// A run of consecutive sequence numbers that never arrived, with the times at which its first and last frame were
/// sent.
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

/// A stall of a sender: it did not run for more than 500 µs. A sender that is merely too slow has no stall.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct TxStall {
    /// Start of the first pause.
    pub at_ns: u64,
    /// Sum of the pauses of the stall, ms.
    pub ms: f64,
    /// Time at which the sender had caught up. Frames before it were late, or followed each other faster than intended.
    pub until_ns: u64,
}

/// The arrivals at one port, of all streams.
#[derive(Debug, Clone, Serialize)]
pub struct PortResult {
    pub name: String,
    /// Frames for which the tester's own receive ring had no room.
    pub rx_overrun: u64,
    /// Frames that do not belong to this trial.
    pub foreign: u64,
    pub rx_total: u64,
    /// Frames longer than all frames of their streams: the interface merged several (GRO). They count as corrupted.
    pub merged: u64,
    /// Null if all streams arrive in clear.
    pub esp: Option<EspCounts>,
    /// Counts of the port's link and of the gateway at its other end, in virtual time; null in real time.
    pub link: Option<LinkCounts>,
}

/// Frames on a link in virtual time that an error affected, in both directions.
#[derive(Debug, Clone, Default, Serialize, PartialEq, Eq)]
pub struct LinkErrors {
    pub lost: u64,
    pub damaged: u64,
    pub late: u64,
}

/// Counts of a port's link in virtual time, and the bytes that the gateway at its other end moved.
#[derive(Debug, Clone, Default, Serialize, PartialEq, Eq)]
pub struct LinkCounts {
    #[serde(flatten)]
    pub errors: LinkErrors,
    /// Bytes that the gateway's Ethernet devices read and wrote over the memory bus: with descriptors, and the frames
    /// alone.
    pub port_read: u64,
    pub port_written: u64,
    pub port_frame_read: u64,
    pub port_frame_written: u64,
    /// Bytes that its security engine read and wrote, and the requests it completed.
    pub sec_read: u64,
    pub sec_written: u64,
    pub sec_descriptors: u64,
}

/// The counts of ESP packets at a port. A packet that was opened is in `packets` and in one of `authentic`, `bad_icv`
/// and
/// `malformed`; an authentic one may also be in one of `repeated`, `old` and `not_rising`. Other packets are only in
/// `malformed` or `unknown_spi`.
#[derive(Debug, Clone, Default, Serialize, PartialEq, Eq)]
pub struct EspCounts {
    /// ESP packets with the SPI and the addresses of an SA of the port.
    pub packets: u64,
    /// Packets with a right ICV, a right trailer and a possible sequence number.
    pub authentic: u64,
    pub bad_icv: u64,
    /// Fragments and packets with wrong addresses, wrong padding, impossible lengths or sequence numbers.
    pub malformed: u64,
    pub unknown_spi: u64,
    /// Frames that arrived in clear although their streams must arrive as ESP.
    pub cleartext: u64,
    /// Authentic packets whose sequence number arrived before in this trial.
    pub repeated: u64,
    /// Authentic packets whose sequence number is not higher than the highest of earlier trials.
    pub old: u64,
    /// Authentic and new packets that arrived after one with a higher sequence number.
    pub not_rising: u64,
    /// Sequence numbers between the lowest and the highest that never arrived: packets lost after encryption.
    pub gaps: u64,
    /// True if packets were opened after the trial.
    pub opened_after: bool,
}

/// A time in which a CPU of the host did not run the thread that watches it.
#[derive(Debug, Clone, Serialize)]
pub struct HostStall {
    pub cpu: usize,
    pub at_ns: u64,
    pub ms: f64,
}

/// The number of times per millisecond that a CPU could do a fixed piece of work (host/cpu_speed.rs).
#[derive(Debug, Clone, Serialize)]
pub struct CpuSpeed {
    /// Mean over the time in which frames were sent.
    pub mean_per_ms: f64,
    /// Highest of all trials of this process so far; 0 if none had samples enough.
    pub fastest_per_ms: f64,
    /// The times of the trial in which it was clearly lower than in most of the trial.
    pub slow_times: Vec<SlowTime>,
}

/// A time in which a CPU was slow, by the same clock as stalls.
#[derive(Debug, Clone, Serialize)]
pub struct SlowTime {
    pub from_ns: u64,
    pub to_ns: u64,
}
