// SPDX-License-Identifier: Apache-2.0
//! A trial, in real time and in virtual time alike: what it may ask for, what it prepares, and what comes of it.
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
