// SPDX-License-Identifier: Apache-2.0
//! What a trial with ESP does before its first frame and after its last, and what its ports must be able to do.

use crate::esp::ready;
use crate::failure::{Failure, Outcome};
use crate::frame::ETHERNET;
use crate::lanes::Part;
use crate::port::{Port, Rx, Tx};
use crate::protocol::{Event, Trial};
use crate::receiver::PortCount;
use crate::sender::Outgoing;

/// XDP programs neither seal nor open, and read the time of departure from the frame.
pub fn check(parts: &[Part], ports: &[Port]) -> Outcome<()> {
    let wrong = |port: &Port, what: &str| {
        Err(Failure::new(
            format!("port {}: XDP {what}", port.told.name),
            "open both ports with \"tx\" and \"rx\": \"af_packet\" or \"af_xdp\"",
        ))
    };
    for port in ports {
        let here = |name: &String| *name == port.told.name;
        let sealed = |part: &&Part| !part.stream.seal.is_empty();
        if matches!(port.tx, Tx::Live(_)) && parts.iter().filter(sealed).any(|p| here(&p.stream.from)) {
            return wrong(port, "sends no ESP");
        }
        let opened = |part: &Part| !part.stream.open.is_empty() || !part.stream.seal.is_empty();
        if matches!(port.rx, Rx::Kernel(_)) && parts.iter().any(|p| opened(p) && here(&p.stream.to)) {
            return wrong(
                port,
                "receives no ESP, and nothing that was sealed before the trial",
            );
        }
    }
    Ok(())
}

/// Seals and makes room where ciphers are too slow for the rate.
pub fn prepare(
    trial: &Trial,
    parts: &[Part],
    outgoing: &mut [Option<Outgoing>],
    counts: &mut [PortCount],
    emit: &mut dyn FnMut(&Event),
    asked_to_stop: &mut dyn FnMut() -> bool,
) -> Outcome<()> {
    let mut room = trial.memory_mib << 20;
    // A flood is as fast as can be, sealing and opening included: it needs no time.
    let rate_of = |part: &Part| match (part.stream.burst_frames, part.stream.rate_fps) {
        (Some(_), _) => ready::BURST_FPS,
        (None, rate) => rate.unwrap_or(0.0),
    };
    let mut stopped = false;
    for (part, stream) in parts.iter().zip(outgoing.iter_mut()) {
        let Some(stream) = stream else { continue };
        ready::make(
            stream,
            part.stream.id,
            rate_of(part),
            &mut room,
            &mut |done, of| {
                stopped |= asked_to_stop();
                emit(&progress(trial, done, of));
                !stopped
            },
        )?;
    }
    if stopped {
        return Err(Failure::new(
            format!("trial {}: stopped while its packets were sealed", trial.id),
            "",
        ));
    }
    let names: Vec<&str> = parts.iter().map(|part| part.stream.to.as_str()).collect();
    for (position, stream) in outgoing.iter().enumerate() {
        let departed = stream.as_ref().and_then(|stream| {
            let ready = stream.sealing.as_ref()?.ready.as_ref()?;
            Some(ready.departed.clone())
        });
        // A port's counts are in the order of the parts that arrive there.
        let place = names[..position]
            .iter()
            .filter(|name| **name == names[position])
            .count();
        if let (Some(departed), Some(count)) = (departed, count_of(counts, &parts[position])) {
            count.streams[place].departed = Some(departed);
        }
    }
    for count in counts.iter_mut() {
        let Some(opening) = &mut count.opening else {
            continue;
        };
        let of_port = |part: &&Part| count.expected.iter().any(|e| e.stream() == part.stream.id);
        let arriving: Vec<&Part> = parts.iter().filter(of_port).collect();
        let longest = count.expected.iter().map(|e| e.longest()).max().unwrap_or(0) - ETHERNET;
        let rate: f64 = arriving.iter().map(|part| rate_of(part)).sum();
        if !ready::too_slow(opening.cost_ns(longest), rate) {
            continue;
        }
        let most: u64 = count.expected.iter().map(|expected| expected.sequences()).sum();
        let needed = opening.kept_bytes(longest) as u64 * most;
        if needed > room as u64 {
            return Err(Failure::new(
                format!(
                    "opening {} frames/s of ESP is too slow on this CPU, so packets are kept and opened after the trial: {most} need {} MiB, {} MiB are left for it",
                    rate as u64,
                    needed >> 20,
                    room >> 20
                ),
                "make the trial shorter or slower, or give more memory_mib",
            ));
        }
        room -= needed as usize;
        opening.keep(needed as usize);
    }
    Ok(())
}

fn count_of<'a>(counts: &'a mut [PortCount], part: &Part) -> Option<&'a mut PortCount> {
    let id = part.stream.id;
    counts
        .iter_mut()
        .find(|count| count.expected.iter().any(|expected| expected.stream() == id))
}

/// Opens what a port has kept.
pub fn open_kept(
    trial: &Trial,
    count: &mut PortCount,
    emit: &mut dyn FnMut(&Event),
    asked_to_stop: &mut dyn FnMut() -> bool,
) -> Outcome<()> {
    let mut stopped = false;
    count.open_kept(&mut |done, of| {
        stopped |= asked_to_stop();
        emit(&progress(trial, done, of));
        !stopped
    });
    if stopped {
        return Err(Failure::new(
            format!("trial {}: stopped while its packets were opened", trial.id),
            "",
        ));
    }
    Ok(())
}

fn progress(trial: &Trial, done: u64, of: u64) -> Event {
    Event::Crypto {
        id: trial.id.clone(),
        done,
        of,
    }
}
