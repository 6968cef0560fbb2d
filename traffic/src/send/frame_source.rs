// SPDX-License-Identifier: Apache-2.0
//! The source of the frames of a stream, or of a noise.

use crate::esp::sealing::Sealing;
use crate::frame::noise::RawFrames;
use crate::frame::template::Template;

/// The frames of a stream or of a noise, made one by one.
pub enum Frames {
    Test(Template),
    /// Test frames that leave as ESP.
    Sealed(Template, Box<Sealing>),
    Raw(RawFrames),
}

impl Frames {
    /// Returns the longest frame; the fields that change from frame to frame are zero. Buffers begin as copies of it.
    pub fn longest(&self) -> Vec<u8> {
        match self {
            Frames::Test(template) => template.bytes().to_vec(),
            Frames::Sealed(template, sealing) => vec![0; sealing.sealer.frame_bytes(template.bytes().len())],
            Frames::Raw(frames) => frames.longest().to_vec(),
        }
    }

    /// Returns the template of a stream's frames; None for noise.
    pub fn template(&self) -> Option<&Template> {
        match self {
            Frames::Test(template) | Frames::Sealed(template, _) => Some(template),
            Frames::Raw(_) => None,
        }
    }

    /// Writes frame `index` to a buffer that began as a copy of `longest()`; returns its length.
    pub fn write(&mut self, buffer: &mut [u8], index: u64, sequence: u64, time: u64) -> usize {
        match self {
            Frames::Test(template) => template.write(buffer, index, sequence, time),
            Frames::Sealed(template, sealing) => sealing.write(template, buffer, index, sequence, time),
            Frames::Raw(frames) => frames.write(buffer, index),
        }
    }
}
