// SPDX-License-Identifier: Apache-2.0
//! The frames of a stream on their way out as ESP, one SA for each of its tunnels.

use std::sync::Arc;

use crate::clock::monotonic_ns;
use crate::esp::Numbers;
use crate::esp::association::Sa;
use crate::esp::ready::Ready;
use crate::esp::suite::Suite;
use crate::failure::{Failure, Outcome};
use crate::frame::{ETHERNET, Template};
use crate::protocol::{Fault, Stream};

/// How far ahead forged numbers are: beyond any window, so that the peer does check the ICV.
const AHEAD: u64 = 1 << 30;
/// Packets that are sealed to find out how long one takes; the quickest round counts.
const ROUND: u64 = 16;
const ROUNDS: usize = 4;

/// How a stream's frames are sealed. Frame k goes through SA k modulo their count.
pub struct Sealer {
    sas: Vec<Sa>,
    /// The ESP number of each SA's first packet.
    first: Vec<u64>,
    /// Of a replay: the numbers that have been used, from 1 on.
    used: Option<u64>,
    wrong_icv: bool,
}

impl Sealer {
    /// None for a stream in clear. `frames`: how many the trial can send at most.
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
        let next: Vec<u64> = stream.seal.iter().map(|sa| numbers.next(sa)).collect();
        let used = next.iter().min().map_or(0, |next| next - 1);
        if stream.fault == Some(Fault::Replay) && used == 0 {
            return Err(wrong(
                "nothing was sent through its SA that could be replayed".into(),
                "send a trial without fault first",
            ));
        }
        let ahead = if stream.fault == Some(Fault::BadIcv) {
            AHEAD
        } else {
            0
        };
        let last = next.iter().max().unwrap_or(&0) + ahead + frames / sas.len() as u64 + 1;
        let counted = used > 0 && stream.fault == Some(Fault::Replay);
        if !counted && last > u64::from(u32::MAX) && sas.iter().any(|sa| !sa.keyed.esn) {
            return Err(wrong(
                format!("the trial could need sequence number {last} of an SA with 32-bit ones"),
                "set up a new SA, use ESN, or make the trial shorter",
            ));
        }
        Ok(Some(Sealer {
            sas,
            first: next.into_iter().map(|next| next + ahead).collect(),
            used: counted.then_some(used),
            wrong_icv: stream.fault == Some(Fault::BadIcv),
        }))
    }

    pub fn suite(&self) -> Suite {
        self.sas[0].keyed.suite
    }

    /// Which SA frame `index` goes through, and the number it has there.
    fn place(&self, index: u64) -> (usize, u64) {
        let count = self.sas.len() as u64;
        let (which, turn) = ((index % count) as usize, index / count);
        let number = match self.used {
            Some(used) => 1 + turn % used,
            None => self.first[which] + turn,
        };
        (which, number)
    }

    /// Bytes of the frame that `plain`, a whole frame of so many bytes, becomes.
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

    /// The highest number of each SA once so many frames were sent; none where faults leave them alone.
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

    /// What sealing the longest frame costs, ns.
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

/// A stream's sealing while it is sent: frame by frame, or from what was made before.
pub struct Sealing {
    pub sealer: Arc<Sealer>,
    plain: Vec<u8>,
    pub ready: Option<Ready>,
}

impl Sealing {
    pub fn new(sealer: Sealer, template: &Template) -> Self {
        Sealing {
            sealer: Arc::new(sealer),
            plain: template.bytes().to_vec(),
            ready: None,
        }
    }

    /// Makes frame `index`, which leaves at `time`, in `out`; returns its length.
    pub fn write(
        &mut self,
        template: &Template,
        out: &mut [u8],
        index: u64,
        sequence: u64,
        time: u64,
    ) -> usize {
        match &self.ready {
            Some(ready) => ready.write(out, index, time),
            None => {
                let length = template.write(&mut self.plain, index, sequence, time);
                self.sealer.seal(&self.plain[..length], index, out)
            }
        }
    }
}
