// SPDX-License-Identifier: Apache-2.0
//! The contract with the controller: one JSON object a line, commands on stdin, events on stdout.
//!
//! Every command is answered by exactly one final event (`hello`, `opened`, `closed`, `resolved`, `trial`,
//! `console`, `branched`) or by `error`; a trial sends `progress` before it, with ESP also `crypto`. Every `*_ns` is
//! CLOCK_MONOTONIC, or virtual time where the ports are links. Frame sizes count the Ethernet FCS (RFC 1242), which
//! the interface adds: 64 means 60 bytes handed to it.

mod results;
mod trial;

use serde::{Deserialize, Serialize};

pub use results::*;
pub use trial::*;

/// Raised when a field changes its meaning or goes away.
pub const PROTOCOL: u32 = 2;

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

fn default_ring() -> usize {
    64
}
fn default_resolve_timeout() -> f64 {
    3.0
}
fn yes() -> bool {
    true
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
