// SPDX-License-Identifier: Apache-2.0
//! The tester as an ESP peer (RFC 4303, tunnel mode). To seal is to encrypt and to compute the ICV; to open is to check
//! the ICV and to decrypt.
//!
//! The inner packet is a test frame of the stream, numbered and checked like any other. If a cipher is too slow for the
//! rate, packets are sealed before the trial and opened after it. This folder imports `count`, `frame` and `wire`.

pub mod association;
pub mod numbers;
pub mod opening;
pub mod sealed_ahead;
pub mod sealer;
pub mod sealing;
pub mod suite;
#[cfg(test)]
mod vector_tests;
