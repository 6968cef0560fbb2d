// SPDX-License-Identifier: Apache-2.0
//! What a trial may ask for.

use crate::esp::association::Sa;
use crate::failure::{Failure, Outcome};
use crate::frame::{ETHERNET, FCS};
use crate::header;
use crate::protocol::{self, OpenedPort};
use crate::trial::FASTEST_FPS;

/// A user's request that makes no sense is refused before any frame is sent.
pub fn check(trial: &protocol::Trial, ports: &[OpenedPort]) -> Outcome<()> {
    let seconds = |name: &str, value: f64, least: f64, most: f64| {
        if (least..=most).contains(&value) {
            Ok(())
        } else {
            Err(Failure::new(
                format!("{name} is {value}, expected {least} to {most} seconds"),
                "",
            ))
        }
    };
    seconds("duration_s", trial.duration_s, 0.001, 86_400.0)?;
    seconds("residue_s", trial.residue_s, 0.0, 3_600.0)?;
    seconds("residue_max_s", trial.residue_max_s, 0.0, 3_600.0)?;
    seconds("quiet_s", trial.quiet_s.unwrap_or(0.0), 0.0, 3_600.0)?;
    if trial.streams.is_empty() {
        return Err(Failure::new(
            "streams is empty",
            "give one stream for each direction of traffic",
        ));
    }
    for (position, stream) in trial.streams.iter().enumerate() {
        let wrong =
            |message: String, hint: &str| Err(Failure::new(format!("stream {}: {message}", stream.id), hint));
        if trial.streams[..position]
            .iter()
            .any(|other| other.id == stream.id)
        {
            return wrong(
                "the id is used twice".into(),
                "each stream needs an id of its own",
            );
        }
        for name in [&stream.from, &stream.to] {
            if !ports.iter().any(|port| port.name == *name) {
                let open: Vec<_> = ports.iter().map(|port| port.name.as_str()).collect();
                return wrong(
                    format!("port '{name}' is not open"),
                    &format!(
                        "open ports: {}",
                        if open.is_empty() {
                            "none".into()
                        } else {
                            open.join(", ")
                        }
                    ),
                );
            }
        }
        if let Some(rate) = stream.rate_fps
            && !(rate.is_finite() && rate > 0.0 && rate <= FASTEST_FPS)
        {
            return wrong(
                format!("rate_fps is {rate}, expected more than 0 and at most {FASTEST_FPS}"),
                "",
            );
        }
        if stream.burst_frames == Some(0) {
            return wrong("burst_frames is 0".into(), "a burst has at least one frame");
        }
        let headers = header::of(stream).map_err(|failure| {
            Failure::new(format!("stream {}: {}", stream.id, failure.message), failure.hint)
        })?;
        let tags = |share: &protocol::FrameShare| {
            headers
                .get(share.header)
                .map_or(0, |header| header.place.l3 - ETHERNET)
        };
        for port in ports
            .iter()
            .filter(|port| port.name == stream.from || port.name == stream.to)
        {
            // VLAN tags are not of the MTU's bytes.
            let untagged = stream
                .frames
                .iter()
                .map(|share| share.size.saturating_sub(tags(share)));
            let plain = untagged.max().unwrap_or(0);
            let as_esp = match (port.name == stream.from, port.name == stream.to) {
                (true, _) => stream.seal.first(),
                (_, true) => stream.open.first(),
                _ => None,
            };
            let longest = match as_esp {
                Some(sa) => framed(&Sa::new(sa)?, plain),
                None => plain,
            };
            if longest > port.mtu as usize + 18 {
                return wrong(
                    format!(
                        "frame size {longest}{} exceeds what {} can carry: MTU {} + 18 bytes of Ethernet header and FCS",
                        if as_esp.is_some() { " as ESP" } else { "" },
                        port.interface,
                        port.mtu
                    ),
                    "use smaller frames, or raise the MTU of both ends",
                );
            }
        }
    }
    Ok(())
}

/// Bytes, with FCS, of the frame that one of so many becomes.
fn framed(sa: &Sa, plain: usize) -> usize {
    let framing = ETHERNET + FCS;
    framing + sa.packet_bytes(plain.saturating_sub(framing))
}
