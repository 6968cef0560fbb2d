// SPDX-License-Identifier: Apache-2.0
//! The sealer of a stream: makes ESP of its frames, with one SA for each of its tunnels.

use crate::esp::association::Sa;
use crate::esp::numbers::Numbers;
use crate::failure::{Failure, Outcome};
use crate::frame::octets::ETHERNET;
use crate::frame::template::Template;
use crate::host::clock::monotonic_ns;
use crate::protocol::{Fault, Stream, Suite};

/// Distance of forged sequence numbers from the next one: beyond any replay window, so that the peer checks the ICV.
const AHEAD: u64 = 1 << 30;
/// Number of packets of a round that measures how long sealing takes; the quickest round counts.
const ROUND: u64 = 16;
const ROUNDS: usize = 4;

/// The SAs of a stream. Frame k goes through SA k modulo their count.
pub struct Sealer {
    sas: Vec<Sa>,
    /// The sequence number of each SA's first packet in this trial.
    first: Vec<u64>,
    /// For a replay, the highest sequence number that is used again; the lowest is 1.
    used: Option<u64>,
    wrong_icv: bool,
}

impl Sealer {
    /// Makes the sealer of a stream that can send at most `frames` frames in this trial; None for a stream in clear.
    pub fn of(stream: &Stream, template: &Template, numbers: &Numbers, frames: u64) -> Outcome<Option<Self>> {
        let wrong =
            |message: String, hint: &str| Failure::new(format!("stream {}: {message}", stream.id), hint);
        if stream.seal.is_empty() {
            return match stream.fault {
                None => Ok(None),
                Some(_) => Err(wrong(
                    "a fault of ESP without seal".into(),
                    "give seal, or remove fault",
                )),
            };
        }
        if stream.seal.len() != usize::from(stream.tunnels) {
            return Err(wrong(
                format!("{} SAs for {} tunnels", stream.seal.len(), stream.tunnels),
                "give one SA for each tunnel",
            ));
        }
        if template.parts().variants.iter().any(|v| v.place.l3 != ETHERNET) {
            return Err(wrong(
                "VLAN tags outside of ESP".into(),
                "use headers without tags",
            ));
        }
        let mut sas = Vec::new();
        for asked in &stream.seal {
            let sa = Sa::new(asked).map_err(|failure| wrong(failure.message, &failure.hint))?;
            if stream.fault == Some(Fault::BadIcv) && sa.keyed.suite.icv_bytes() == 0 {
                let what = format!("{:?} has no ICV that could be wrong", sa.keyed.suite);
                return Err(wrong(what, "use a suite with integrity"));
            }
            sas.push(sa);
        }
        let (first, used) = first_numbers(stream, &sas, numbers, frames)
            .map_err(|failure| wrong(failure.message, &failure.hint))?;
        Ok(Some(Sealer {
            sas,
            first,
            used,
            wrong_icv: stream.fault == Some(Fault::BadIcv),
        }))
    }

    pub fn suite(&self) -> Suite {
        self.sas[0].keyed.suite
    }

    /// Returns the index of the SA that seals frame `index`, and the frame's sequence number in this SA.
    fn place(&self, index: u64) -> (usize, u64) {
        let count = self.sas.len() as u64;
        let (which, turn) = ((index % count) as usize, index / count);
        let number = match self.used {
            Some(used) => 1 + turn % used,
            None => self.first[which] + turn,
        };
        (which, number)
    }

    /// Returns the length of the sealed frame that is made of a plain frame of `plain` bytes, both without FCS.
    pub fn frame_bytes(&self, plain: usize) -> usize {
        ETHERNET + self.sas[0].packet_bytes(plain - ETHERNET)
    }

    /// Seals frame `index`. Writes the sealed frame to the start of `out`; returns its length.
    pub fn seal(&self, plain: &[u8], index: u64, out: &mut [u8]) -> usize {
        let (which, number) = self.place(index);
        let sa = &self.sas[which];
        out[..12].copy_from_slice(&plain[..12]);
        out[12..ETHERNET].copy_from_slice(&sa.ethertype.to_be_bytes());
        let length = ETHERNET + sa.seal(&plain[ETHERNET..], number, &mut out[ETHERNET..]);
        if self.wrong_icv {
            out[length - 1] ^= 1;
        }
        length
    }

    /// Returns the highest sequence number of each SA after `sent` frames; empty if the stream has a deliberate fault.
    pub fn last_numbers(&self, sent: u64) -> Vec<u64> {
        if self.used.is_some() || self.wrong_icv {
            return Vec::new();
        }
        let count = self.sas.len() as u64;
        self.first
            .iter()
            .zip(0..)
            .map(|(&first, which)| first + (sent + count - 1 - which) / count - 1)
            .collect()
    }

    /// Measures the time to seal the longest frame, ns.
    pub fn cost_ns(&self, template: &Template) -> f64 {
        let plain = template.bytes();
        let mut out = vec![0; self.frame_bytes(plain.len())];
        let round = |_| {
            let from_ns = monotonic_ns();
            for index in 0..ROUND {
                self.seal(plain, index, &mut out);
            }
            (monotonic_ns() - from_ns) as f64 / ROUND as f64
        };
        (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
    }
}

/// Returns the sequence number of each SA's first packet and, for a replay, the highest number that is used again.
fn first_numbers(
    stream: &Stream,
    sas: &[Sa],
    numbers: &Numbers,
    frames: u64,
) -> Outcome<(Vec<u64>, Option<u64>)> {
    let next: Vec<u64> = stream.seal.iter().map(|sa| numbers.next(sa)).collect();
    if stream.fault == Some(Fault::Replay) {
        let used = next.iter().min().map_or(0, |next| next - 1);
        if used == 0 {
            return Err(Failure::new(
                "nothing was sent through its SA that could be replayed",
                "send a trial without fault first",
            ));
        }
        return Ok((next, Some(used)));
    }
    let ahead = if stream.fault == Some(Fault::BadIcv) {
        AHEAD
    } else {
        0
    };
    let last = next.iter().max().unwrap_or(&0) + ahead + frames / sas.len() as u64 + 1;
    if last > u64::from(u32::MAX) && sas.iter().any(|sa| !sa.keyed.esn) {
        return Err(Failure::new(
            format!("the trial could need sequence number {last} of an SA with 32-bit ones"),
            "set up a new SA, use ESN, or make the trial shorter",
        ));
    }
    Ok((next.into_iter().map(|next| next + ahead).collect(), None))
}
