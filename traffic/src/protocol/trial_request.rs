// SPDX-License-Identifier: Apache-2.0
//! The trial that the controller asks for: streams of test frames, and noise in addition.

use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    pub id: String,
    pub duration_s: f64,
    /// Time to wait for frames after the last one was sent, s (RFC 2544, 23: at least 2 s).
    #[serde(default = "default_residue")]
    pub residue_s: f64,
    /// Time without arrivals, s, that ends the wait early if every frame sent has arrived. Null: it never ends early.
    #[serde(default)]
    pub quiet_s: Option<f64>,
    /// Longest wait, s, if frames still arrive after residue_s.
    #[serde(default = "default_residue_max")]
    pub residue_max_s: f64,
    /// Memory, MiB, for packets that are sealed before the trial and for packets that are opened after it.
    #[serde(default = "default_memory")]
    pub memory_mib: usize,
    pub streams: Vec<Stream>,
    #[serde(default)]
    pub noise: Vec<Noise>,
    /// Times after the start, s, in order. At each of them the trial sends an event `moment` and stands still until the
    /// command `continue`. Commands `console` that arrive before it are carried out while frames flow. Works only in
    /// virtual time.
    #[serde(default)]
    pub moments_s: Vec<f64>,
}

/// A rate that applies from at_s seconds after the start.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateStep {
    pub at_s: f64,
    /// 0 means that nothing is sent until the next step.
    pub rate_fps: f64,
}

/// Other traffic during the trial, such as an attack. Its packets are sent unchanged. Their arrival is not measured (at
/// a port they count as foreign), and no stream's figures contain them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// Must differ from the ids of all streams and of all other noise.
    pub id: u16,
    pub from: String,
    /// Means the same as a stream's rate_fps.
    #[serde(default)]
    pub rate_fps: Option<f64>,
    #[serde(default)]
    pub steps: Vec<RateStep>,
    #[serde(default)]
    pub burst_frames: Option<u64>,
    pub src_mac: String,
    pub dst_mac: String,
    /// Whole IPv4 or IPv6 packets as base64. They are sent in turn, repeatedly.
    pub packets: Vec<String>,
    /// Place in each packet of 8 bytes that differ whenever the packet is sent again: the number of the round (from 0) is
    /// XORed with them, and the UDP checksum follows. An even number of bytes from the start of the IP header, behind it
    /// and not at the checksum. Null: the packets repeat unchanged.
    #[serde(default)]
    pub counter_at: Option<usize>,
}

/// One direction of traffic. Its frames rotate through its flows, which share one sequence of numbers.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    pub id: u16,
    pub from: String,
    pub to: String,
    /// Frames per second. Null means as fast as the port takes them.
    #[serde(default)]
    pub rate_fps: Option<f64>,
    /// Changes of the rate during the trial, in the order of time. They need rate_fps, which applies until the first
    /// step.
    #[serde(default)]
    pub steps: Vec<RateStep>,
    /// Number of frames after which the stream stops, sent at rate_fps (null: back to back).
    #[serde(default)]
    pub burst_frames: Option<u64>,
    /// Share of the trial's duration by which pauses of the sender may postpone the frames after them. Pauses beyond
    /// that are caught up by sending faster. If several CPUs send from the port, all pauses are caught up.
    #[serde(default)]
    pub leeway: f64,
    /// Asks for the latency of the first frame that leaves at this time after the start, s, or later (RFC 2544, 26.2).
    #[serde(default)]
    pub tag_at_s: Option<f64>,
    /// Asks for a list of the gaps between arrivals that are longer than this, s. Null asks only for the longest gap.
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
    /// Number of subnets on each side. Source and destination of frame k are in subnet k modulo tunnels. Cannot be used
    /// together with networks.
    #[serde(default = "one")]
    pub tunnels: u16,
    /// Prefix length of one tunnel's subnet; needed for more than one tunnel.
    #[serde(default)]
    pub tunnel_bits: u8,
    #[serde(default = "one")]
    pub ports: u16,
    /// Headers to use in place of the RFC 2544 test frame's, each as base64 of all bytes before the payload: Ethernet,
    /// up to two VLAN tags, IPv4 or IPv6 without extension headers, UDP or TCP. The generator writes MAC and IP
    /// addresses, lengths, TTL, identification, DF and checksums all the same; the header's own ports replace
    /// src_port and dst_port.
    #[serde(default)]
    pub headers: Vec<String>,
    /// SAs, one for each tunnel, that seal the frames. Frame sizes are those of the cleartext. Live frames cannot be
    /// sealed. Streams without a fault share no SA.
    #[serde(default)]
    pub seal: Vec<Association>,
    /// SAs that open the frames when they arrive. Frames of this stream that arrive in clear are then counted as such.
    #[serde(default)]
    pub open: Vec<Association>,
    /// A deliberate fault of the packets that are sent.
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
    pub suite: Suite,
    #[serde(default)]
    pub esn: bool,
    /// Hexadecimal. The key of an AEAD ends with its salt.
    pub encryption_key: Key,
    #[serde(default)]
    pub integrity_key: Key,
}

/// The ESP suites, by the names that the controller uses (catalogue/suites.yaml).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Suite {
    #[serde(rename = "null-null")]
    NullNull,
    #[serde(rename = "null-sha1")]
    NullSha1,
    #[serde(rename = "3des-sha1")]
    TripleDesSha1,
    #[serde(rename = "aes128-sha1")]
    Aes128Sha1,
    #[serde(rename = "aes256-sha256")]
    Aes256Sha256,
    #[serde(rename = "aes128gcm16")]
    Aes128Gcm16,
    #[serde(rename = "aes256gcm16")]
    Aes256Gcm16,
    #[serde(rename = "chacha20poly1305")]
    ChaCha20Poly1305,
}

/// A key. Its bytes appear in no text, for instance of a log.
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

/// A fault of ESP packets. The peer must refuse packets with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Forges packets: they have sequence numbers that were never used, and a wrong ICV.
    BadIcv,
    /// Replays sequence numbers that earlier trials used, in order and repeatedly, with a right ICV.
    Replay,
}

/// One frame size of a mix. Its weight is the number of such frames in a cycle.
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
fn one() -> u16 {
    1
}
fn one_u32() -> u32 {
    1
}
