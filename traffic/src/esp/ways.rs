// SPDX-License-Identifier: Apache-2.0
//! What a trial with ESP does before its first frame and after its last, and what its ports must be able to do.

use crate::esp::ready;
use crate::failure::{Failure, Outcome};
use crate::frame::ETHERNET;
use crate::frames::Frames;
use crate::lanes::Part;
use crate::port::{Port, Rx, Tx};
use crate::protocol::{Event, Stream, Trial};
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
        let sealed = |stream: &&Stream| !stream.seal.is_empty();
        let streams = || parts.iter().filter_map(|part| part.stream.as_ref());
        if matches!(port.tx, Tx::Live(_)) && streams().filter(sealed).any(|stream| here(&stream.from)) {
            return wrong(port, "sends no ESP");
        }
        let opened = |stream: &Stream| !stream.open.is_empty() || !stream.seal.is_empty();
        if matches!(port.rx, Rx::Kernel(_)) && streams().any(|stream| opened(stream) && here(&stream.to)) {
            return wrong(
                port,
                "receives no ESP, and nothing that was sealed before the trial",
            );
        }
    }
    Ok(())
}

/// Seals and makes room where ciphers are too slow for the rate. Returns why not all frames can be sent.
pub fn prepare(
    trial: &Trial,
    parts: &[Part],
    outgoing: &mut [Option<Outgoing>],
    counts: &mut [PortCount],
    emit: &mut dyn FnMut(&Event),
    asked_to_stop: &mut dyn FnMut() -> bool,
) -> Outcome<Vec<String>> {
    let mut shortfalls = Vec::new();
    let mut room = trial.memory_mib << 20;
    // A flood is as fast as can be, sealing and opening included: it needs no time.
    let rate_of = |part: &Part| match (part.schedule.is_paced(), part.schedule.planned()) {
        (true, _) => 1e9 / part.schedule.least_interval_ns(),
        (false, Some(_)) => ready::BURST_FPS,
        (false, None) => 0.0,
    };
    let mut stopped = false;
    for (part, stream) in parts.iter().zip(outgoing.iter_mut()) {
        let Some(stream) = stream else { continue };
        shortfalls.extend(ready::make(stream, rate_of(part), &mut room, &mut |done, of| {
            stopped |= asked_to_stop();
            emit(&progress(trial, done, of));
            !stopped
        }));
    }
    if stopped {
        return Err(Failure::new(
            format!("trial {}: stopped while its packets were sealed", trial.id),
            "",
        ));
    }
    let to = |part: &Part| part.stream.as_ref().map(|stream| stream.to.clone());
    let names: Vec<Option<String>> = parts.iter().map(to).collect();
    for (position, stream) in outgoing.iter().enumerate() {
        let departed = stream.as_ref().and_then(|stream| match &stream.frames {
            Frames::Sealed(_, sealing) => Some(sealing.ready.as_ref()?.departed.clone()),
            _ => None,
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
        let ids: Vec<u16> = count.expected.iter().map(|expected| expected.stream()).collect();
        let arrives = |part: &Part| {
            part.stream
                .as_ref()
                .is_some_and(|stream| ids.contains(&stream.id))
        };
        let arriving: Vec<usize> = (0..parts.len()).filter(|&p| arrives(&parts[p])).collect();
        let longest = count.expected.iter().map(|e| e.longest()).max().unwrap_or(0) - ETHERNET;
        let rate: f64 = arriving.iter().map(|&part| rate_of(&parts[part])).sum();
        let cost_ns = opening.cost_ns(longest);
        if !ready::too_slow(cost_ns, rate) {
            continue;
        }
        let most: u64 = count.expected.iter().map(|expected| expected.sequences()).sum();
        let needed = opening.kept_bytes(longest) * most as usize;
        if needed > room {
            let share = (room / opening.kept_bytes(longest) / arriving.len()) as u64;
            for &part in &arriving {
                if let Some(stream) = &mut outgoing[part] {
                    stream.most = stream.most.min(share);
                }
            }
            shortfalls.push(format!(
                "to open a packet takes {:.1} µs, too long for {rate:.0} frames/s, and kept for after the trial {share} of {most} fit the memory for it ({} MiB; native: esp_memory_mib)",
                cost_ns / 1e3,
                room >> 20
            ));
        }
        opening.keep(needed.min(room));
        room -= needed.min(room);
    }
    Ok(shortfalls)
}

fn count_of<'a>(counts: &'a mut [PortCount], part: &Part) -> Option<&'a mut PortCount> {
    let id = part.stream.as_ref()?.id;
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
