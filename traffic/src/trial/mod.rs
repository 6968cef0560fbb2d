// SPDX-License-Identifier: Apache-2.0
//! The parts of a trial that are the same in real time and in virtual time: check of the request, preparation, result.
//!
//! This folder imports `send` and `receive`, and opens no port.

pub mod caller;
pub mod check_request;
pub mod ciphers;
#[cfg(test)]
mod esp_tests;
pub mod losses;
pub mod numbering;
pub mod parts;
pub mod preparation;
pub mod progress;
pub mod result;
