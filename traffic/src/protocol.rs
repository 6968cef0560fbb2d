// SPDX-License-Identifier: Apache-2.0
//! The contract with the controller: one JSON object a line, commands on stdin, events on stdout.
//!
//! Every command is answered by exactly one final event (`hello`, `opened`, `closed`, `resolved`, `trial`,
//! `console`, `branched`) or by `error`; a trial sends `progress` before it. Every `*_ns` is CLOCK_MONOTONIC, or virtual time where the
//! ports are links. Frame sizes count the Ethernet FCS (RFC 1242), which the interface adds: 64 means 60 bytes
//! handed to it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Raised when a field changes its meaning or goes away.
pub const PROTOCOL: u32 = 1;

#[derive(Debug, Deserialize)]
#[serde(tag = "cmd", rename_all = "snake_case")]
pub enum Command {
    Hello,
    Open(Open),
    Resolve(Resolve),
    Trial(Trial),
    Console(Console),
    Branch(Branch),
    /// Ends the running trial early; without one it does nothing.
    Stop,
    Close,
}

/// Attach to the ports, closing those that were open.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// Seeds the key that tells this run's frames from another's; random when absent, in virtual time 0.
    pub run_key: Option<u64>,
    /// CPUs whose stalls are recorded during trials.
    #[serde(default)]
    pub watch_cpus: Vec<usize>,
    pub ports: Vec<OpenPort>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenPort {
    pub name: String,
    #[serde(default)]
    pub interface: String,
    /// In place of an interface, and then of all ports: the file of a link in virtual time, of which the
    /// generator has end 0. Nothing else but the name counts then.
    #[serde(default)]
    pub link: Option<std::path::PathBuf>,
    /// Path of a network namespace; null: the one the generator runs in.
    #[serde(default)]
    pub netns: Option<String>,
    /// Needed for an interface of the initial namespace (RFC 6815: never on a production network).
    #[serde(default)]
    pub i_own_this_network: bool,
    /// CPUs that send together; only XDP uses more than the first.
    #[serde(default)]
    pub tx_cpus: Vec<usize>,
    #[serde(default)]
    pub rx_cpu: Option<usize>,
    #[serde(default = "default_ring")]
    pub rx_ring_mib: usize,
    #[serde(default = "yes")]
    pub promiscuous: bool,
    #[serde(default)]
    pub tx: Path,
    #[serde(default)]
    pub rx: Path,
}

/// How frames go out, or come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Path {
    /// XDP where the port's driver can, else AF_PACKET.
    #[default]
    Auto,
    /// XDP, or a failure that says what is missing.
    Xdp,
    AfXdp,
    AfPacket,
}

/// Find the MAC of `gateway` and answer for `address` until the ports are closed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resolve {
    pub port: String,
    pub address: std::net::IpAddr,
    pub gateway: std::net::IpAddr,
    #[serde(default = "default_resolve_timeout")]
    pub timeout_s: f64,
    /// A VLAN tag of the question and of our answers, base64 of its four bytes; empty: none.
    #[serde(default)]
    pub tags: String,
}

/// In virtual time only: type a line into the console of the guest at a port's link, and let time pass until it
/// prints a line that begins with `until`. Between commands virtual time stands.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Console {
    pub port: String,
    /// Null: only wait, for instance for the end of booting.
    #[serde(default)]
    pub line: Option<String>,
    pub until: String,
    /// Of virtual time.
    pub timeout_s: f64,
}

/// In virtual time only: copy all guests as they stand, and go on with the copies, instead of those of the last
/// branch. What was opened stays as it is: each branch begins there.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Branch {
    /// The links between guests.
    #[serde(default)]
    pub others: Vec<std::path::PathBuf>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    pub id: String,
    pub duration_s: f64,
    /// How long to wait for frames after the last one was sent (RFC 2544, 23: at least 2 s).
    #[serde(default = "default_residue")]
    pub residue_s: f64,
    /// When every frame sent has been accounted for, so long a silence ends the wait; null: never early.
    #[serde(default)]
    pub quiet_s: Option<f64>,
    /// Frames that still arrive when residue_s is over are waited for, up to this.
    #[serde(default = "default_residue_max")]
    pub residue_max_s: f64,
    /// Room for packets that are sealed before the trial, and for those that are opened after it.
    #[serde(default = "default_memory")]
    pub memory_mib: usize,
    pub streams: Vec<Stream>,
    #[serde(default)]
    pub noise: Vec<Noise>,
}

/// From at_s seconds after the start on, this rate.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateStep {
    pub at_s: f64,
    /// 0: nothing until the next step.
    pub rate_fps: f64,
}

/// Other traffic at the same time, sent as it is: an attack. What becomes of it is not looked at (where it arrives
/// at a port it is foreign), and no stream's figures contain it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// Of the same numbers as the streams' ids.
    pub id: u16,
    pub from: String,
    /// As a stream's.
    #[serde(default)]
    pub rate_fps: Option<f64>,
    #[serde(default)]
    pub steps: Vec<RateStep>,
    #[serde(default)]
    pub burst_frames: Option<u64>,
    pub src_mac: String,
    pub dst_mac: String,
    /// IPv4 or IPv6 packets, whole, base64; they leave in turn, again and again.
    pub packets: Vec<String>,
}

/// One direction of traffic; its flows rotate inside it and share its sequence numbers.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    pub id: u16,
    pub from: String,
    pub to: String,
    /// Frames per second; null: as fast as the port takes them.
    #[serde(default)]
    pub rate_fps: Option<f64>,
    /// Changes of the rate in mid-trial, in the order of time; needs rate_fps, which holds until the first.
    #[serde(default)]
    pub steps: Vec<RateStep>,
    /// Send so many frames at rate_fps (null: back to back), then stop.
    #[serde(default)]
    pub burst_frames: Option<u64>,
    /// Tell the latency of the first frame that leaves at this time or later (RFC 2544, 26.2), s after the start.
    #[serde(default)]
    pub tag_at_s: Option<f64>,
    /// List times without arrivals that are longer than this; null: only the longest is told.
    #[serde(default)]
    pub gaps_over_s: Option<f64>,
    pub frames: Vec<FrameShare>,
    pub src_mac: String,
    pub dst_mac: String,
    pub ip_version: u8,
    pub src: std::net::IpAddr,
    /// Destination in the first network; network n adds n to the third octet (IPv6: the eighth).
    pub dst: std::net::IpAddr,
    #[serde(default)]
    pub dont_fragment: bool,
    #[serde(default = "default_ttl")]
    pub ttl: u8,
    /// Source port of the first flow; flow p of a network adds p.
    pub src_port: u16,
    pub dst_port: u16,
    #[serde(default = "one")]
    pub networks: u16,
    /// Subnets on each side; frame k comes from and goes to number k modulo tunnels. Not with networks.
    #[serde(default = "one")]
    pub tunnels: u16,
    /// Prefix length of one tunnel's subnet; needed for more than one tunnel.
    #[serde(default)]
    pub tunnel_bits: u8,
    #[serde(default = "one")]
    pub ports: u16,
    /// Other headers than the RFC 2544 test frame's, base64 of all bytes before the payload: Ethernet, up to two
    /// VLAN tags, IPv4 or IPv6 without extension headers, UDP or TCP. Written by the generator all the same: MAC
    /// and IP addresses, lengths, TTL, identification, DF, checksums; a header's ports stand for src_port, dst_port.
    #[serde(default)]
    pub headers: Vec<String>,
    /// Leave as ESP: one SA for each tunnel. Sizes are those of the frames before. Not with live frames.
    #[serde(default)]
    pub seal: Vec<Association>,
    /// Arrive as ESP, through these SAs, and never in clear.
    #[serde(default)]
    pub open: Vec<Association>,
    /// What is wrong with the packets that leave.
    #[serde(default)]
    pub fault: Option<Fault>,
}

/// An ESP SA in tunnel mode (RFC 4301 4.4.2).
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Association {
    pub spi: u32,
    /// The outer addresses.
    pub source: std::net::IpAddr,
    pub destination: std::net::IpAddr,
    pub suite: crate::esp::suite::Suite,
    #[serde(default)]
    pub esn: bool,
    /// Hexadecimal; of an AEAD the salt comes last.
    pub encryption_key: Key,
    #[serde(default)]
    pub integrity_key: Key,
}

/// A key, which shows itself to nobody.
#[derive(Clone, Default)]
pub struct Key(Vec<u8>);

impl Key {
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "({} bytes)", self.0.len())
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let wrong = || serde::de::Error::custom("a key that is no hexadecimal text");
        let text = serde_json::Value::deserialize(from)?;
        let digits = text
            .as_str()
            .filter(|text| text.is_ascii() && text.len() % 2 == 0);
        let digits = digits.ok_or_else(wrong)?;
        let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16);
        let bytes: Result<Vec<u8>, _> = (0..digits.len()).step_by(2).map(byte).collect();
        bytes.map(Key).map_err(|_| wrong())
    }
}

/// ESP that its peer must not accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Forged: numbers that were never used, and a wrong ICV.
    BadIcv,
    /// Numbers that were used in trials before, in order and again and again, with a right ICV.
    Replay,
}

/// One frame size of a mix; weights are counts of frames in a cycle.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrameShare {
    pub size: usize,
    #[serde(default = "one_u32")]
    pub weight: u32,
    /// Index into the stream's headers.
    #[serde(default)]
    pub header: usize,
}

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    Hello {
        version: &'static str,
        protocol: u32,
        pid: u32,
    },
    Opened {
        ports: Vec<OpenedPort>,
    },
    Closed,
    Resolved {
        port: String,
        gateway: std::net::IpAddr,
        mac: String,
    },
    Branched {
        /// Virtual time.
        now_ns: u64,
    },
    /// All lines that the guest printed since the last look, the awaited one last.
    Console {
        port: String,
        /// Virtual time.
        now_ns: u64,
        lines: Vec<String>,
    },
    Progress {
        id: String,
        elapsed_s: f64,
        tx_frames: u64,
        rx_frames: u64,
    },
    /// Packets sealed before a trial, or opened after it.
    Crypto {
        id: String,
        done: u64,
        of: u64,
    },
    Trial(Box<TrialResult>),
    Wired,
    Error {
        message: String,
        hint: String,
    },
}

#[derive(Debug, Clone, Serialize)]
pub struct OpenedPort {
    pub name: String,
    pub interface: String,
    pub driver: String,
    pub mac: String,
    pub mtu: u32,
    pub carrier: bool,
    pub speed_mbps: Option<u32>,
    pub sender: String,
    pub receiver: String,
    pub notes: Vec<String>,
}

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

fn default_ring() -> usize {
    64
}
fn default_resolve_timeout() -> f64 {
    3.0
}
fn default_residue() -> f64 {
    2.0
}
fn default_residue_max() -> f64 {
    30.0
}
fn default_memory() -> usize {
    1024
}
fn default_ttl() -> u8 {
    64
}
fn yes() -> bool {
    true
}
fn one() -> u16 {
    1
}
fn one_u32() -> u32 {
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An unknown key is refused by name instead of being ignored.
    #[test]
    fn unknown_key_is_named() {
        let line =
            r#"{"cmd":"resolve","port":"west","address":"10.0.0.2","gateway":"10.0.0.1","tiemout_s":1}"#;
        let error = serde_json::from_str::<Command>(line).unwrap_err().to_string();
        assert!(error.contains("tiemout_s"), "{error}");
    }

    /// Defaults make the smallest useful stream short.
    #[test]
    fn stream_defaults() {
        let line = r#"{"cmd":"trial","id":"t","duration_s":1,"streams":[{"id":0,"from":"west","to":"east",
            "frames":[{"size":64}],"src_mac":"02:00:00:00:00:01","dst_mac":"02:00:00:00:00:02","ip_version":4,
            "src":"198.18.0.2","dst":"198.19.0.2","src_port":49184,"dst_port":7}]}"#;
        let Command::Trial(trial) = serde_json::from_str(line).unwrap() else {
            panic!("not a trial");
        };
        assert_eq!(trial.residue_s, 2.0);
        assert_eq!((trial.streams[0].networks, trial.streams[0].tunnels), (1, 1));
        assert_eq!(trial.streams[0].frames[0].weight, 1);
    }
}
