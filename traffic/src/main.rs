// SPDX-License-Identifier: Apache-2.0
//! The native traffic generator of espbench.

mod arrivals;
mod cli;
mod clock;
mod departures;
mod esp;
mod failure;
mod flows;
mod frame;
mod frames;
mod header;
mod lanes;
mod latency;
mod losses;
mod neighbours;
mod netlink;
mod noise;
mod one_trial;
mod pace;
mod port;
mod preparation;
mod protocol;
mod receiver;
mod request;
mod result;
mod sender;
mod sequence;
mod serve;
mod session;
mod signals;
mod sizes;
mod stalls;
mod threads;
mod trial;
mod tx_stalls;
mod verify;
mod virtual_time;
mod waking;
mod watch;
mod wire;
mod xdp;

use clap::Parser;

fn main() -> std::process::ExitCode {
    let outcome = match cli::Arguments::parse().command {
        cli::Command::Serve => {
            serve::serve();
            Ok(())
        }
        cli::Command::Trial(arguments) => one_trial::run(&arguments),
        cli::Command::Wire(arguments) => wire::run(&arguments),
        cli::Command::Link(arguments) => virtual_time::memory::create(
            &arguments.path,
            arguments.latency_ns,
            arguments.step_ns,
            8_000 / arguments.mbps.max(1),
        ),
    };
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("espbench-traffic: {failure}");
            std::process::ExitCode::FAILURE
        }
    }
}
