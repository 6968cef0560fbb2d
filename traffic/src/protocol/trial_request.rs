// SPDX-License-Identifier: Apache-2.0
//! The trial that the controller asks for: streams of test frames, and noise beside them.

use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    pub id: String,
    pub duration_s: f64,
    /// Time to wait for frames after the last one was sent, s (RFC 2544, 23: at least 2 s).
    #[serde(default = "default_residue")]
    pub residue_s: f64,
    /// Silence, s, that ends the wait once every frame sent has been accounted for. Null means that it never ends early.
    #[serde(default)]
    pub quiet_s: Option<f64>,
    /// Longest wait for frames that still arrive when residue_s is over, s.
    #[serde(default = "default_residue_max")]
    pub residue_max_s: f64,
    /// Room for packets that are sealed before the trial, and for those that are opened after it.
    #[serde(default = "default_memory")]
    pub memory_mib: usize,
    pub streams: Vec<Stream>,
    #[serde(default)]
    pub noise: Vec<Noise>,
    /// Times after the start, s, in order. At each, an event `moment` tells that the trial stands still, until the
    /// command `continue`; what is asked of a guest's console before that, is asked while frames flow. Works in virtual
    /// time alone.
    #[serde(default)]
    pub moments_s: Vec<f64>,
}

/// A rate that holds from at_s seconds after the start on.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateStep {
    pub at_s: f64,
    /// 0 means that nothing is sent until the next step.
    pub rate_fps: f64,
}

/// Other traffic at the same time, such as an attack. It is sent as it is given. Nobody looks at what becomes of it
/// (at a port it counts as foreign), and no stream's figures contain it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// Differs from the ids of all streams, too.
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
    /// Whole IPv4 or IPv6 packets as base64. They leave in turn, again and again.
    pub packets: Vec<String>,
}

/// One direction of traffic; its flows rotate inside it and share its sequence numbers.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    pub id: u16,
    pub from: String,
    pub to: String,
    /// Frames per second. Null means as fast as the port takes them.
    #[serde(default)]
    pub rate_fps: Option<f64>,
    /// Changes of the rate in mid-trial, in the order of time; needs rate_fps, which holds until the first.
    #[serde(default)]
    pub steps: Vec<RateStep>,
    /// Frames to send at rate_fps (null: back to back) before the stream stops.
    #[serde(default)]
    pub burst_frames: Option<u64>,
    /// Share of the trial's duration by which pauses of the sender may put off what follows them; what they cost beyond
    /// that is made good. A port that several CPUs send from makes all good.
    #[serde(default)]
    pub leeway: f64,
    /// Asks for the latency of the first frame that leaves so many seconds after the start or later (RFC 2544, 26.2).
    #[serde(default)]
    pub tag_at_s: Option<f64>,
    /// Asks for a list of the times without arrivals that are longer than this, s. Null asks for the longest alone.
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
    /// Subnets on each side: frame k comes from and goes to number k modulo tunnels. Excludes networks.
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
    /// SAs, one for each tunnel, that seal the frames. Frame sizes are those before that. Live frames cannot be sealed.
    #[serde(default)]
    pub seal: Vec<Association>,
    /// SAs that open the frames, which then must never arrive in clear.
    #[serde(default)]
    pub open: Vec<Association>,
    /// A deliberate fault of the packets that leave.
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

/// A key. No text that is made of it, such as a log, shows it.
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

/// A fault for which the peer must refuse an ESP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Forges packets: numbers that were never used, and a wrong ICV.
    BadIcv,
    /// Replays numbers that earlier trials used, in order and again and again, with a right ICV.
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
