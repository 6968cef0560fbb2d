// SPDX-License-Identifier: Apache-2.0
//! The sealer of a stream: its frames leave as ESP, one SA for each of its tunnels.

use crate::esp::association::Sa;
use crate::esp::numbers::Numbers;
use crate::failure::{Failure, Outcome};
use crate::frame::octets::ETHERNET;
use crate::frame::template::Template;
use crate::host::clock::monotonic_ns;
use crate::protocol::{Fault, Stream, Suite};

/// Distance of forged numbers: beyond any window, so that the peer does check the ICV.
const AHEAD: u64 = 1 << 30;
/// Number of packets that are sealed to find out how long one takes; the quickest round counts.
const ROUND: u64 = 16;
const ROUNDS: usize = 4;

/// The SAs of a stream. Frame k goes through SA k modulo their count.
pub struct Sealer {
    sas: Vec<Sa>,
    /// The ESP number of each SA's first packet.
    first: Vec<u64>,
    /// Number of numbers, from 1 on, that a replay uses again.
    used: Option<u64>,
    wrong_icv: bool,
}

impl Sealer {
    /// Makes the sealer of a stream, of which the trial can send `frames` at most; None for a stream in clear.
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

    /// Returns which SA frame `index` goes through, and the number it has there.
    fn place(&self, index: u64) -> (usize, u64) {
        let count = self.sas.len() as u64;
        let (which, turn) = ((index % count) as usize, index / count);
        let number = match self.used {
            Some(used) => 1 + turn % used,
            None => self.first[which] + turn,
        };
        (which, number)
    }

    /// Returns the bytes of the frame that a plain one of so many bytes becomes.
    pub fn frame_bytes(&self, plain: usize) -> usize {
        ETHERNET + self.sas[0].packet_bytes(plain - ETHERNET)
    }

    /// Seals frame `index`; returns the length of what now starts `out`.
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

    /// Returns the highest number of each SA once so many frames were sent; none where a fault uses no new ones.
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

    /// Measures what sealing the longest frame costs, ns.
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

/// Returns the number of each SA's first packet and, for a replay, how many numbers it uses again.
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
