// SPDX-License-Identifier: Apache-2.0
//! The command line: subcommands and their arguments.

use std::net::IpAddr;

use clap::{Args, Parser, Subcommand};

use crate::protocol::{FrameShare, Path};

#[derive(Parser)]
#[command(
    version,
    about = "Sends test frames, and counts, verifies and times every one that arrives"
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Take commands as JSON lines on stdin, answer with JSON lines on stdout (what espbench uses)
    Serve,
    /// Run one trial between two ports and print what happened
    Trial(Box<Trial>),
    /// Copy frames between two taps or sockets: "no DUT", to measure the generator's own ceiling, or a link that errs
    Wire(Wire),
    /// Make the file of a new link in virtual time, for a generator and an emulated gateway, or for two of those
    Link(Link),
}

/// An interface, and the namespace it is in.
#[derive(Clone)]
pub struct PortName {
    pub interface: String,
    pub netns: Option<String>,
}

fn port(text: &str) -> Result<PortName, String> {
    let (interface, netns) = match text.split_once('@') {
        Some((interface, netns)) => (interface, Some(netns)),
        None => (text, None),
    };
    Ok(PortName {
        interface: interface.into(),
        // A bare name is one of `ip netns`.
        netns: netns.map(|netns| {
            if netns.contains('/') {
                netns.into()
            } else {
                format!("/run/netns/{netns}")
            }
        }),
    })
}

fn share(text: &str) -> Result<FrameShare, String> {
    let (size, weight) = text.split_once(':').unwrap_or((text, "1"));
    let number = |part: &str| {
        part.parse()
            .map_err(|_| format!("'{text}' is not SIZE or SIZE:WEIGHT"))
    };
    Ok(FrameShare {
        header: 0,
        size: number(size)? as usize,
        weight: number(weight)?,
    })
}

fn mbps(text: &str) -> Result<u32, String> {
    match text {
        "10" => Ok(10),
        "100" => Ok(100),
        "1000" => Ok(1000),
        _ => Err("the rates of Ethernet up to 1 Gbps are 10, 100 and 1000".into()),
    }
}

#[derive(Args)]
#[command(after_help = "Example, two ends of a path in namespaces t1 and t2:
  espbench-traffic trial --west a0@t1 --east a1@t2 --src 10.0.1.2 --dst 10.0.2.2 \\
      --west-gateway 10.0.1.1 --east-gateway 10.0.2.1 --rate 50000 --size 64 --seconds 10")]
pub struct Trial {
    /// Port that sends: INTERFACE[@NAMESPACE], the namespace by name or path
    #[arg(long, value_parser = port)]
    pub west: PortName,
    /// Port that receives
    #[arg(long, value_parser = port)]
    pub east: PortName,
    /// Send from east to west at the same time, at the same rate
    #[arg(long)]
    pub both_ways: bool,
    /// Frames per second [default: as fast as possible]
    #[arg(long)]
    pub rate: Option<f64>,
    /// Send so many frames, then stop; back to back without a rate
    #[arg(long)]
    pub burst: Option<u64>,
    /// Frame size with FCS, or a mix: 64:7,594:4,1518:1
    #[arg(long, value_delimiter = ',', value_parser = share, default_value = "64")]
    pub size: Vec<FrameShare>,
    #[arg(long, default_value_t = 10.0)]
    pub seconds: f64,
    /// Share of the duration by which pauses of the sender put off what follows them, instead of being made good
    #[arg(long, default_value_t = 0.0)]
    pub leeway: f64,
    /// Wait so long for frames after the last one was sent (s)
    #[arg(long, default_value_t = 2.0)]
    pub residue: f64,
    /// West's address
    #[arg(long, default_value = "198.18.0.2")]
    pub src: IpAddr,
    /// East's address
    #[arg(long, default_value = "198.19.0.2")]
    pub dst: IpAddr,
    /// Next hop of west, found by ARP or ND [default: none, frames go to east's MAC]
    #[arg(long)]
    pub west_gateway: Option<IpAddr>,
    /// Next hop of east
    #[arg(long)]
    pub east_gateway: Option<IpAddr>,
    #[arg(long, default_value_t = 49184)]
    pub src_port: u16,
    #[arg(long, default_value_t = 7)]
    pub dst_port: u16,
    /// Rotate through so many destination networks
    #[arg(long, default_value_t = 1)]
    pub networks: u16,
    /// Rotate through so many tunnels: subnets on both sides, source and destination of the same number
    #[arg(
        long,
        default_value_t = 1,
        conflicts_with = "networks",
        requires = "tunnel_bits"
    )]
    pub tunnels: u16,
    /// Prefix length of one tunnel's subnet
    #[arg(long)]
    pub tunnel_bits: Option<u8>,
    /// Rotate through so many source ports
    #[arg(long, default_value_t = 1)]
    pub ports: u16,
    #[arg(long)]
    pub dont_fragment: bool,
    /// CPU of the sending threads; several send together (0,1)
    #[arg(long, value_delimiter = ',')]
    pub tx_cpu: Vec<usize>,
    /// CPU of the receiving threads
    #[arg(long)]
    pub rx_cpu: Option<usize>,
    /// Receive ring of each port, MiB
    #[arg(long, default_value_t = 64)]
    pub rx_ring: usize,
    /// Way by which frames go out
    #[arg(long, value_enum, default_value_t = Path::Auto)]
    pub tx: Path,
    /// Way by which frames come in
    #[arg(long, value_enum, default_value_t = Path::Auto)]
    pub rx: Path,
    /// Record stalls of these CPUs
    #[arg(long, value_delimiter = ',')]
    pub watch_cpus: Vec<usize>,
    /// Allow interfaces of the initial network namespace (RFC 6815: never a network in use)
    #[arg(long)]
    pub i_own_this_network: bool,
    /// Print the result event as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
#[command(
    after_help = "With --lose, --flip, --late or --delay-ns it is a link that errs. A line {\"seed\": N} on stdin lets
errors begin anew (0: ends them), and is answered with those since the last such line."
)]
pub struct Wire {
    /// A persistent tap interface, or fd:N, a socket of type SOCK_SEQPACKET
    #[arg(long)]
    pub a: String,
    /// Another
    #[arg(long)]
    pub b: String,
    /// Path of the namespace that taps are in
    #[arg(long)]
    pub netns: Option<String>,
    /// Pin the copying threads
    #[arg(long)]
    pub cpu: Option<usize>,
    /// The taps carry no virtio-net header
    #[arg(long)]
    pub no_vnet_hdr: bool,
    #[command(flatten)]
    pub errors: Errors,
    /// Time by which all frames come later, ns
    #[arg(long, default_value_t = 0)]
    pub delay_ns: u64,
    /// Number of the link among those of one seed
    #[arg(long, default_value_t = 1)]
    pub link: u64,
}

impl Wire {
    /// Returns whether it is a link that errs.
    pub fn errs(&self) -> bool {
        self.delay_ns > 0 || self.errors.errors() != crate::fates::Errors::default()
    }
}

#[derive(Args)]
pub struct Link {
    /// The file to be made, best in /dev/shm
    pub path: std::path::PathBuf,
    /// 10, 100 or 1000
    #[arg(long, default_value_t = 1000, value_parser = mbps)]
    pub mbps: u32,
    /// Time from the last bit's departure to its arrival; the two ends may run as far ahead of each other
    #[arg(long, default_value_t = 50_000)]
    pub latency_ns: u64,
    /// Time between two promises of an end. The default is for a generator at end 0, which leads; between two
    /// gateways at most the latency
    #[arg(long, default_value_t = crate::virtual_time::link_port::STEP_NS)]
    pub step_ns: u64,
    #[command(flatten)]
    pub errors: Errors,
}

/// Errors of a link once it has a seed: in the branches of virtual time, or when a wire is told to begin.
#[derive(Args)]
pub struct Errors {
    /// Share of frames that never come
    #[arg(long, default_value_t = 0.0, value_parser = chance)]
    pub lose: f64,
    /// Share of bits that are flipped; any port drops a frame with one
    #[arg(long, default_value_t = 0.0, value_parser = chance)]
    pub flip: f64,
    /// Share of frames that come later
    #[arg(long, default_value_t = 0.0, value_parser = chance)]
    pub late: f64,
    /// Time by which they come later, ns
    #[arg(long, default_value_t = 0)]
    pub late_ns: u32,
}

impl Errors {
    /// Returns what goes wrong, as a link has it.
    pub fn errors(&self) -> crate::fates::Errors {
        crate::fates::Errors {
            lose: (self.lose * 2f64.powi(64)) as u64,
            flip: (self.flip * 2f64.powi(64)) as u64,
            late: (self.late * 2f64.powi(32)) as u32,
            late_ns: self.late_ns,
        }
    }
}

/// Parses a share of at least 0, below 1.
fn chance(text: &str) -> Result<f64, String> {
    let found: f64 = text.parse().map_err(|_| format!("{text} is no number"))?;
    if (0.0..1.0).contains(&found) {
        return Ok(found);
    }
    Err(format!("expected at least 0 and below 1, got {text}"))
}
