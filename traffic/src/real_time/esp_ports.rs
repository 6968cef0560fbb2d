// SPDX-License-Identifier: Apache-2.0
//! The check that the ports of a trial can carry its ESP.

use crate::failure::{Failure, Outcome};
use crate::port::{Port, Rx, Tx};
use crate::protocol::Stream;
use crate::trial::parts::Part;

/// Refuses ESP at ports that use XDP. XDP programs neither seal nor open packets, and they read the time of departure
/// from the frame, which a frame sealed before the trial does not have.
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
