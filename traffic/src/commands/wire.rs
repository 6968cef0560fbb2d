// SPDX-License-Identifier: Apache-2.0
//! `espbench-traffic wire` joins two taps or sockets by a copy loop, in place of a DUT, or as a link that errs.

use std::io::{BufRead, ErrorKind};
use std::sync::Arc;

use serde::Deserialize;

use crate::commands::erring::{self, Way};
use crate::commands::taps::{End, HEADER, LONGEST};
use crate::commands::{cli, output};
use crate::failure::{Failure, Outcome};
use crate::host::netns::Netns;
use crate::host::threads;
use crate::protocol::{Event, LinkErrors};

/// The one command that a wire takes: errors begin anew from this seed (0: there are none), and those since the last
/// command are answered.
#[derive(Deserialize)]
struct Begin {
    seed: u64,
}

/// Copies frames one way until an end goes away.
fn copy(from: &End, to: &End) -> std::io::Error {
    let mut buffer = vec![0u8; LONGEST];
    loop {
        match from.take(&mut buffer) {
            Ok(length) => match to.give(&buffer[..HEADER + length]) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return error,
            },
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return error,
        }
    }
}

/// Joins two ends until stdin ends.
pub fn run(arguments: &cli::Wire) -> Outcome<()> {
    threads::die_with_parent();
    let netns = Netns::open(arguments.netns.as_deref())?;
    let vnet_header = !arguments.no_vnet_hdr;
    let (a, b) = netns.enter(|| {
        Ok((
            End::open(&arguments.a, vnet_header)?,
            End::open(&arguments.b, vnet_header)?,
        ))
    })?;
    let (a, b) = (Arc::new(a), Arc::new(b));
    if let Some(cpu) = arguments.cpu {
        threads::pin(cpu).map_err(|error| Failure::io(format!("pinning to CPU {cpu}"), &error))?;
    }
    let ways = arguments
        .errs()
        .then(|| [0, 1].map(|end| Arc::new(Way::new(arguments, end))));
    if ways.is_some() {
        erring::wake_exactly();
        a.without_waiting()?;
        b.without_waiting()?;
    }
    for (end, (from, to)) in [(&a, &b), (&b, &a)].into_iter().enumerate() {
        let (from, to, cpu) = (from.clone(), to.clone(), arguments.cpu);
        let way = ways.as_ref().map(|ways| ways[end].clone());
        std::thread::spawn(move || {
            if let Some(cpu) = cpu {
                let _ = threads::pin(cpu); // `run` has pinned itself before, and failed where that cannot be
            }
            let error = match way {
                Some(way) => way.carry(&from, &to),
                None => copy(&from, &to),
            };
            output::emit_failure(Failure::io("copying between the ends of the wire", &error));
            std::process::exit(1);
        });
    }
    output::emit(&Event::Wired);
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match (serde_json::from_str::<Begin>(&line), &ways) {
            (Ok(Begin { seed }), Some(ways)) => output::emit(&Event::Erred(begin(ways, seed))),
            (Ok(_), None) => output::emit_failure(Failure::new(
                "this wire makes no errors",
                "start it with --lose, --flip, --late or --delay-ns",
            )),
            (Err(error), _) => output::emit_failure(Failure::new(
                format!("not a command of a wire: {error}"),
                "expected a line such as {\"seed\": 7}",
            )),
        }
    }
    Ok(())
}

/// Lets both directions begin anew; returns what they did until now.
fn begin(ways: &[Arc<Way>; 2], seed: u64) -> LinkErrors {
    let [one, other] = ways.each_ref().map(|way| way.begin(seed));
    LinkErrors {
        lost: one.lost + other.lost,
        damaged: one.damaged + other.damaged,
        late: one.late + other.late,
    }
}
