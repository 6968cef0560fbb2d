// SPDX-License-Identifier: Apache-2.0
//! `espbench-traffic trial` runs one trial from a shell, and prints a summary for people.

use std::net::IpAddr;

use crate::commands::session::Session;
use crate::commands::{cli, output};
use crate::failure::{Failure, Outcome};
use crate::host::signals;
use crate::protocol::{Event, Open, OpenPort, OpenedPort, Resolve, Stream, StreamResult, Trial, TrialResult};
use crate::trial::caller::Caller;

/// An end of the trial: a port, with its address and the gateway behind it.
#[derive(Clone)]
struct End {
    name: &'static str,
    address: IpAddr,
    gateway: Option<IpAddr>,
    mac: String,
}

/// Opens the ports, runs the trial, and prints its result.
pub fn run(arguments: &cli::Trial) -> Outcome<()> {
    signals::install();
    let mut session = Session::default();
    let Event::Opened { ports } = session.open(&open(arguments))? else {
        return Err(Failure::new("the ports did not open", "report this"));
    };
    for note in ports.iter().flat_map(|port| &port.notes) {
        eprintln!("note: {note}");
    }
    let end = |name, address, gateway| End {
        name,
        address,
        gateway,
        mac: mac_of(&ports, name),
    };
    let west = end("west", arguments.src, arguments.west_gateway);
    let east = end("east", arguments.dst, arguments.east_gateway);
    let from_west = hop(&mut session, &west, &east)?;
    let from_east = hop(&mut session, &east, &west)?;
    let mut streams = vec![stream(arguments, 0, [west.clone(), east.clone()], from_west)];
    if arguments.both_ways {
        streams.push(stream(arguments, 1, [east, west], from_east));
    }
    let trial = Trial {
        id: "shell".into(),
        duration_s: arguments.seconds,
        residue_s: arguments.residue,
        quiet_s: Some(0.1),
        residue_max_s: 30.0,
        memory_mib: 1024,
        streams,
        noise: Vec::new(),
        moments_s: Vec::new(),
    };
    let mut caller = Caller {
        emit: &mut |_| {},
        asked_to_stop: &mut signals::asked_to_end,
        next_command: &mut || None,
    };
    let result = session.trial(&trial, &mut caller)?;
    if arguments.json {
        output::emit(&Event::Trial(Box::new(result)));
    } else {
        print(&result);
    }
    Ok(())
}

fn mac_of(ports: &[OpenedPort], name: &str) -> String {
    let port = ports.iter().find(|port| port.name == name);
    port.map_or_else(String::new, |port| port.mac.clone())
}

/// Returns the destination MAC of the frames that an end sends: its gateway's or, without a gateway, the other end's.
fn hop(session: &mut Session, from: &End, to: &End) -> Outcome<String> {
    let Some(gateway) = from.gateway else {
        return Ok(to.mac.clone());
    };
    let asked = Resolve {
        port: from.name.into(),
        address: from.address,
        gateway,
        timeout_s: 3.0,
        tags: String::new(),
    };
    match session.resolve(&asked, &mut signals::asked_to_end)? {
        Event::Resolved { mac, .. } => Ok(mac),
        _ => Err(Failure::new(
            format!("gateway {gateway} was not resolved"),
            "report this",
        )),
    }
}

/// Makes the stream of one direction.
fn stream(arguments: &cli::Trial, id: u16, ends: [End; 2], dst_mac: String) -> Stream {
    let [from, to] = ends;
    Stream {
        id,
        from: from.name.into(),
        to: to.name.into(),
        rate_fps: arguments.rate,
        steps: Vec::new(),
        burst_frames: arguments.burst,
        leeway: arguments.leeway,
        tag_at_s: None,
        gaps_over_s: None,
        frames: arguments.size.clone(),
        src_mac: from.mac,
        dst_mac,
        ip_version: if arguments.src.is_ipv6() { 6 } else { 4 },
        src: from.address,
        dst: to.address,
        dont_fragment: arguments.dont_fragment,
        ttl: 64,
        src_port: arguments.src_port,
        dst_port: arguments.dst_port,
        networks: arguments.networks,
        tunnels: arguments.tunnels,
        tunnel_bits: arguments.tunnel_bits.unwrap_or(0),
        ports: arguments.ports,
        headers: Vec::new(),
        seal: Vec::new(),
        open: Vec::new(),
        fault: None,
    }
}

/// Makes the request to open both ports.
fn open(arguments: &cli::Trial) -> Open {
    let port = |name: &str, port: &cli::PortName| OpenPort {
        name: name.into(),
        interface: port.interface.clone(),
        link: None,
        netns: port.netns.clone(),
        i_own_this_network: arguments.i_own_this_network,
        tx_cpus: arguments.tx_cpu.clone(),
        rx_cpu: arguments.rx_cpu,
        rx_ring_mib: arguments.rx_ring,
        promiscuous: true,
        tx: arguments.tx,
        rx: arguments.rx,
    };
    Open {
        run_key: None,
        watch_cpus: arguments.watch_cpus.clone(),
        ports: vec![port("west", &arguments.west), port("east", &arguments.east)],
    }
}

fn print(result: &TrialResult) {
    for stream in &result.streams {
        print_stream(stream, result.start_ns);
    }
    for port in &result.ports {
        println!(
            "{}: {} frames in, {} foreign, {} lost by the tester's own ring",
            port.name, port.rx_total, port.foreign, port.rx_overrun
        );
    }
    for (cpu, ms) in &result.host_stall_ms_total {
        println!("CPU {cpu}: {ms:.1} ms of stalls");
    }
    if result.clock_step_ns != 0 {
        println!(
            "WARNING: the wall clock was stepped by {} ns: latencies are void",
            result.clock_step_ns
        );
    }
    if result.stopped_early {
        println!("WARNING: stopped early");
    }
    for note in &result.notes {
        println!("note: {note}");
    }
}

fn print_stream(stream: &StreamResult, start_ns: u64) {
    let offered = stream.tx_frames as f64 / stream.duration_s.max(1e-9);
    println!("{} → {}", stream.from, stream.to);
    println!("  offered     {offered:.1} fps for {:.3} s", stream.duration_s);
    if let Some(fps) = stream.departure_fps {
        println!("  left        at {fps:.1} fps, from the first frame to the last");
    }
    println!(
        "  sent        {}   unsent {}   refused by the first ring {}",
        stream.tx_frames, stream.unsent, stream.tx_refused
    );
    println!(
        "  received    {}   ({} of them after the last was sent)",
        stream.rx_frames, stream.rx_after_stop
    );
    let ratio = stream.lost as f64 / stream.tx_frames.max(1) as f64 * 100.0;
    println!("  lost        {}   ({ratio:.4} %)", stream.lost);
    let since_s = |ns: u64| ns.saturating_sub(start_ns) as f64 / 1e9;
    if let (Some(first_ns), Some(last_ns)) = (stream.first_lost_ns, stream.last_lost_ns) {
        println!(
            "              the first left at {:.6} s, the last at {:.6} s",
            since_s(first_ns),
            since_s(last_ns)
        );
    }
    if let Some(gap) = stream.longest_gap {
        println!(
            "  longest gap {:.3} ms without an arrival, from {:.6} s on",
            gap.ns() as f64 / 1e6,
            since_s(gap.from_ns)
        );
    }
    let reordered = stream
        .reordered
        .map_or("not known".into(), |frames| frames.to_string());
    println!(
        "  duplicated  {}   reordered {reordered}   corrupted {}",
        stream.duplicated, stream.corrupted
    );
    if let Some(latency) = &stream.latency_us {
        println!(
            "  latency     min {:.1}  mean {:.1}  p50 {:.1}  p99 {:.1}  max {:.1} µs",
            latency.min, latency.mean, latency.p50, latency.p99, latency.max
        );
    }
    if let Some(late) = &stream.lateness_us {
        println!(
            "  left late   p50 {:.1}  p99 {:.1}  max {:.1} µs   {} frames by more than 100 µs",
            late.p50, late.p99, late.max, stream.late_frames
        );
    }
}
