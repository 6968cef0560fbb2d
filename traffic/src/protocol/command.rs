// SPDX-License-Identifier: Apache-2.0
//! The commands of the controller.

use serde::Deserialize;

use crate::protocol::trial_request::Trial;

#[derive(Debug, Deserialize)]
#[serde(tag = "cmd", rename_all = "snake_case")]
pub enum Command {
    Hello,
    Open(Open),
    Resolve(Resolve),
    Trial(Trial),
    Console(Console),
    Branch(Branch),
    /// Continues a trial that stands still at one of its moments.
    Continue,
    /// Ends the running trial early; without one it does nothing.
    Stop,
    Close,
}

/// Opens ports, and closes those that were open.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// Seed of the key by which the frames of this run are recognised. Default: random; in virtual time 0.
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
    /// File of a link in virtual time; the generator is at its end 0. If one port has a link, all ports must have one,
    /// and none may have an interface; apart from the name, all other keys are ignored then.
    #[serde(default)]
    pub link: Option<std::path::PathBuf>,
    /// Path of a network namespace. Null means the one in which the generator runs.
    #[serde(default)]
    pub netns: Option<String>,
    /// Must be true for an interface in the initial namespace (RFC 6815: never on a production network).
    #[serde(default)]
    pub i_own_this_network: bool,
    /// CPUs that share the sending. Only XDP uses more than the first one.
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

/// The path on which a port sends or receives frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Path {
    /// Selects XDP if the port's driver can do it, else AF_PACKET.
    #[default]
    Auto,
    /// Demands XDP; the failure says what is missing.
    Xdp,
    AfXdp,
    AfPacket,
}

/// Resolves the MAC address of `gateway`, and answers requests for `address` until the ports are closed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resolve {
    pub port: String,
    pub address: std::net::IpAddr,
    pub gateway: std::net::IpAddr,
    #[serde(default = "default_resolve_timeout")]
    pub timeout_s: f64,
    /// Base64 of the four bytes of a VLAN tag for the tester's question and answers. Empty means none.
    #[serde(default)]
    pub tags: String,
}

/// Types a line into the console of the guest at a port's link, and lets time pass until the guest prints a line that
/// begins with `until`. Works only in virtual time, which stands still between commands.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Console {
    pub port: String,
    /// The line to type. Null: types nothing and only waits, for instance for the end of booting.
    #[serde(default)]
    pub line: Option<String>,
    pub until: String,
    /// Seconds of virtual time.
    pub timeout_s: f64,
}

/// Copies all guests and continues with the copies, which replace those of the previous branch. The originals do not
/// run any further, so that each branch starts in the same state: that of the guests that were opened or, after a
/// branch with `anew`, of the copies made by it. Works only in virtual time.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Branch {
    /// The files of the links between guests.
    #[serde(default)]
    pub others: Vec<std::path::PathBuf>,
    /// Seed of the random errors on links that have errors; 0: no errors occur.
    #[serde(default)]
    pub seed: u64,
    /// Starts with the guests as they were at the first command with `anew`, and ends all other copies. Later branches
    /// start from this one.
    #[serde(default)]
    pub anew: bool,
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

    /// Keys that are left out have their defaults.
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
