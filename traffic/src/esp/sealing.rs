// SPDX-License-Identifier: Apache-2.0
//! The sealing of a stream while it is sent: each frame is sealed when it leaves, or was sealed before the trial.

use std::sync::Arc;

use crate::esp::sealed_ahead::Ready;
use crate::esp::sealer::Sealer;
use crate::frame::template::Template;

/// The sealing of one stream. `ready` has its frames if they were sealed before the trial.
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

    /// Writes the sealed frame `index`, which leaves at `time`, to the start of `out`; returns its length.
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
