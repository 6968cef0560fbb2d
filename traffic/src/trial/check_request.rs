// SPDX-License-Identifier: Apache-2.0
//! The check of the request for a trial.

use std::collections::HashSet;

use crate::esp::association::Sa;
use crate::esp::numbers;
use crate::failure::{Failure, Outcome};
use crate::frame::headers;
use crate::frame::noise::RawFrames;
use crate::frame::octets::{ETHERNET, FCS};
use crate::protocol::{FrameShare, Noise, OpenedPort, RateStep, Stream, Trial};
use crate::xdp::layout::STEPS;

/// Highest rate that a stream or noise may have, frames per second.
const FASTEST_FPS: f64 = 50e6;
/// Largest leeway, as a share of the duration. With more, the offered load would differ too much from the intended
/// load.
const MOST_LEEWAY: f64 = 0.1;

/// Fails if the request cannot be carried out, before any frame is sent.
pub fn check(trial: &Trial, ports: &[OpenedPort]) -> Outcome<()> {
    seconds("duration_s", trial.duration_s, 0.001, 86_400.0)?;
    seconds("residue_s", trial.residue_s, 0.0, 3_600.0)?;
    seconds("residue_max_s", trial.residue_max_s, 0.0, 3_600.0)?;
    seconds("quiet_s", trial.quiet_s.unwrap_or(0.0), 0.0, 3_600.0)?;
    for (position, &at_s) in trial.moments_s.iter().enumerate() {
        let least = if position == 0 {
            0.0
        } else {
            trial.moments_s[position - 1]
        };
        seconds("a time of moments_s", at_s, least, trial.duration_s)?;
    }
    if trial.streams.is_empty() {
        return Err(Failure::new(
            "streams is empty",
            "give one stream for each direction of traffic",
        ));
    }
    for (position, stream) in trial.streams.iter().enumerate() {
        let at_stream = |failure: Failure| {
            Failure::new(format!("stream {}: {}", stream.id, failure.message), failure.hint)
        };
        if trial.streams[..position]
            .iter()
            .any(|other| other.id == stream.id)
        {
            return Err(at_stream(Failure::new(
                "the id is used twice",
                "each stream needs an id of its own",
            )));
        }
        check_stream(trial, stream, ports).map_err(at_stream)?;
        check_sizes(stream, ports)?;
    }
    check_seals(&trial.streams)?;
    for (position, noise) in trial.noise.iter().enumerate() {
        let at_noise =
            |failure: Failure| Failure::new(format!("noise {}: {}", noise.id, failure.message), failure.hint);
        let streams = trial.streams.iter().map(|stream| stream.id);
        let before = trial.noise[..position].iter().map(|other| other.id);
        if streams.chain(before).any(|id| id == noise.id) {
            return Err(at_noise(Failure::new(
                "the id is used twice",
                "each stream and each noise needs an id of its own",
            )));
        }
        let port = check_noise(trial, noise, ports).map_err(at_noise)?;
        let longest = RawFrames::new(noise, 0)?.longest().len() - ETHERNET;
        if longest > port.mtu as usize {
            return Err(at_noise(Failure::new(
                format!(
                    "a packet of {longest} bytes exceeds the MTU of {}, {}",
                    port.interface, port.mtu
                ),
                "use smaller packets, or raise the MTU of both ends",
            )));
        }
    }
    Ok(())
}

fn seconds(name: &str, value: f64, least: f64, most: f64) -> Outcome<()> {
    if (least..=most).contains(&value) {
        Ok(())
    } else {
        Err(Failure::new(
            format!("{name} is {value}, expected {least} to {most} seconds"),
            "",
        ))
    }
}

/// Checks ports, rates and times of a stream.
fn check_stream(trial: &Trial, stream: &Stream, ports: &[OpenedPort]) -> Outcome<()> {
    for name in [&stream.from, &stream.to] {
        if !ports.iter().any(|port| port.name == *name) {
            let open: Vec<_> = ports.iter().map(|port| port.name.as_str()).collect();
            let open = if open.is_empty() {
                "none".into()
            } else {
                open.join(", ")
            };
            return Err(Failure::new(
                format!("port '{name}' is not open"),
                format!("open ports: {open}"),
            ));
        }
    }
    check_rates(
        stream.rate_fps,
        &stream.steps,
        stream.burst_frames,
        trial.duration_s,
    )?;
    check_leeway(stream.leeway, &stream.steps)?;
    for (name, value) in [("tag_at_s", stream.tag_at_s), ("gaps_over_s", stream.gaps_over_s)] {
        if let Some(value) = value {
            seconds(name, value, 0.0, 86_400.0)?;
        }
    }
    Ok(())
}

/// Checks that the MTUs of both ports allow a stream's frames, in clear or as ESP.
fn check_sizes(stream: &Stream, ports: &[OpenedPort]) -> Outcome<()> {
    let at_stream =
        |failure: Failure| Failure::new(format!("stream {}: {}", stream.id, failure.message), failure.hint);
    let headers = headers::of(stream).map_err(at_stream)?;
    let tags = |share: &FrameShare| {
        headers
            .get(share.header)
            .map_or(0, |header| header.place.l3 - ETHERNET)
    };
    // The MTU does not include VLAN tags.
    let untagged = stream
        .frames
        .iter()
        .map(|share| share.size.saturating_sub(tags(share)));
    let plain = untagged.max().unwrap_or(0);
    for port in ports {
        let as_esp = if port.name == stream.from {
            stream.seal.first()
        } else if port.name == stream.to {
            stream.open.first()
        } else {
            continue;
        };
        let longest = match as_esp {
            Some(sa) => framed(&Sa::new(sa)?, plain),
            None => plain,
        };
        if longest > port.mtu as usize + ETHERNET + FCS {
            return Err(at_stream(Failure::new(
                format!(
                    "frame size {longest}{} exceeds what {} can carry: MTU {} + 18 bytes of Ethernet header and FCS",
                    if as_esp.is_some() { " as ESP" } else { "" },
                    port.interface,
                    port.mtu
                ),
                "use smaller frames, or raise the MTU of both ends",
            )));
        }
    }
    Ok(())
}

/// Refuses an SA that seals for two streams or tunnels: both would give their packets the same sequence numbers. Streams
/// with a deliberate fault may use the SA of another, which they attack.
fn check_seals(streams: &[Stream]) -> Outcome<()> {
    let mut used = HashSet::new();
    for stream in streams.iter().filter(|stream| stream.fault.is_none()) {
        for sa in &stream.seal {
            if !used.insert(numbers::identity(sa)) {
                return Err(Failure::new(
                    format!("stream {}: SA {:#010x} is used twice to seal", stream.id, sa.spi),
                    "give each stream and each tunnel an SA of its own, so that no sequence number is used twice",
                ));
            }
        }
    }
    Ok(())
}

/// Checks the port and the rates of noise; returns the port.
fn check_noise<'a>(trial: &Trial, noise: &Noise, ports: &'a [OpenedPort]) -> Outcome<&'a OpenedPort> {
    let Some(port) = ports.iter().find(|port| port.name == noise.from) else {
        return Err(Failure::new(
            format!("port '{}' is not open", noise.from),
            "open it first",
        ));
    };
    check_rates(noise.rate_fps, &noise.steps, noise.burst_frames, trial.duration_s)?;
    Ok(port)
}

/// Returns the length of the sealed frame that is made of a plain frame of `plain` bytes, both with FCS.
fn framed(sa: &Sa, plain: usize) -> usize {
    let framing = ETHERNET + FCS;
    framing + sa.packet_bytes(plain.saturating_sub(framing))
}

/// Checks the leeway: the share of the duration by which pauses may make a trial longer.
fn check_leeway(leeway: f64, steps: &[RateStep]) -> Outcome<()> {
    if !(0.0..=MOST_LEEWAY).contains(&leeway) {
        return Err(Failure::new(
            format!("leeway is {leeway}, expected 0 to {MOST_LEEWAY}"),
            "it is a share of the trial's duration",
        ));
    }
    if leeway > 0.0 && !steps.is_empty() {
        return Err(Failure::new(
            "leeway is given, and steps too",
            "rates that change at a time are made good in full: leave leeway out",
        ));
    }
    Ok(())
}

/// Checks the rate, if there is one, its steps and the length of a burst.
fn check_rates(rate: Option<f64>, steps: &[RateStep], burst: Option<u64>, duration_s: f64) -> Outcome<()> {
    let wrong = |message: String, hint: &str| Err(Failure::new(message, hint));
    let possible = |rate: f64| rate.is_finite() && (0.0..=FASTEST_FPS).contains(&rate);
    let none = |rate: f64| rate == 0.0;
    if let Some(rate) = rate {
        if !possible(rate) || none(rate) && steps.iter().all(|step| none(step.rate_fps)) {
            return wrong(
                format!("rate_fps is {rate}, expected more than 0 and at most {FASTEST_FPS}"),
                "",
            );
        }
    }
    if burst == Some(0) {
        return wrong("burst_frames is 0".into(), "a burst has at least one frame");
    }
    if steps.is_empty() {
        return Ok(());
    }
    if rate.is_none() || burst.is_some() {
        return wrong(
            "steps change a rate, and there is none, or a burst".into(),
            "give rate_fps for the time before the first step, and no burst_frames",
        );
    }
    if steps.len() >= STEPS {
        return wrong(
            format!("{} steps, expected at most {}", steps.len(), STEPS - 1),
            "",
        );
    }
    let mut before_s = 0.0;
    for step in steps {
        if !(before_s < step.at_s && step.at_s < duration_s) {
            return wrong(
                format!(
                    "a step at {} s, expected one after {before_s} s and before the end at {duration_s} s",
                    step.at_s
                ),
                "steps are in the order of time, and within the trial",
            );
        }
        if !possible(step.rate_fps) {
            return wrong(
                format!(
                    "the step at {} s is to {} frames/s, expected 0 to {FASTEST_FPS}",
                    step.at_s, step.rate_fps
                ),
                "",
            );
        }
        before_s = step.at_s;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Fault;
    use crate::protocol::sample::{association, stream};

    /// No SA seals for two streams or two tunnels, but an attack uses that of the stream which it attacks.
    #[test]
    fn an_sa_seals_for_one_stream() {
        let sealed = |spis: &[u32]| Stream {
            seal: spis.iter().map(|&spi| association("aes128gcm16", spi)).collect(),
            ..stream(4, &[84])
        };
        assert!(check_seals(&[sealed(&[0x1000, 0x1001]), sealed(&[0x1002]), sealed(&[])]).is_ok());
        for streams in [
            vec![sealed(&[0x1000]), sealed(&[0x1001, 0x1000])],
            vec![sealed(&[0x1000, 0x1000])],
        ] {
            let failure = check_seals(&streams).unwrap_err();
            assert!(
                failure.message.contains("SA 0x00001000 is used twice"),
                "{failure}"
            );
        }
        let attack = Stream {
            fault: Some(Fault::Replay),
            ..sealed(&[0x1000])
        };
        assert!(check_seals(&[sealed(&[0x1000]), attack]).is_ok());
    }

    /// Impossible rates and steps are refused, and the message contains them.
    #[test]
    fn rates_are_checked() {
        let step = |at_s, rate_fps| RateStep { at_s, rate_fps };
        for (rate, steps, burst, words) in [
            (Some(0.0), vec![], None, "rate_fps is 0, expected more than 0"),
            (Some(0.0), vec![step(0.5, 0.0)], None, "rate_fps is 0"),
            (Some(f64::NAN), vec![], None, "rate_fps is NaN"),
            (None, vec![step(0.5, 1.0)], None, "there is none"),
            (Some(1.0), vec![step(0.5, 1.0)], Some(7), "or a burst"),
            (Some(1.0), vec![step(0.0, 1.0)], None, "a step at 0 s"),
            (
                Some(1.0),
                vec![step(0.5, 1.0), step(0.5, 2.0)],
                None,
                "expected one after 0.5 s",
            ),
            (Some(1.0), vec![step(1.0, 1.0)], None, "before the end at 1 s"),
            (Some(1.0), vec![step(0.5, -1.0)], None, "is to -1 frames/s"),
            (
                Some(1.0),
                vec![step(0.5, 1.0); STEPS],
                None,
                "16 steps, expected at most 15",
            ),
            (None, vec![], Some(0), "a burst has"),
        ] {
            let failure = check_rates(rate, &steps, burst, 1.0).unwrap_err();
            assert!(format!("{failure}").contains(words), "{failure}");
        }
        assert!(check_rates(Some(0.0), &[step(0.5, 1.0)], None, 1.0).is_ok());
        assert!(check_rates(Some(1.0), &[], Some(7), 1.0).is_ok());
    }
    /// A leeway that is negative, too large, or given together with steps is refused.
    #[test]
    fn leeway_is_checked() {
        let step = RateStep {
            at_s: 0.5,
            rate_fps: 1.0,
        };
        for (leeway, steps, words) in [
            (-0.01, vec![], "expected 0 to 0.1"),
            (0.11, vec![], "expected 0 to 0.1"),
            (f64::NAN, vec![], "leeway is NaN"),
            (0.01, vec![step], "and steps too"),
        ] {
            let failure = check_leeway(leeway, &steps).unwrap_err();
            assert!(format!("{failure}").contains(words), "{failure}");
        }
        assert!(check_leeway(0.0, &[step]).is_ok());
        assert!(check_leeway(0.1, &[]).is_ok());
    }
}
