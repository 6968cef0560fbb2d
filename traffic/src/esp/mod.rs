// SPDX-License-Identifier: Apache-2.0
//! The tester as an ESP peer (RFC 4303, tunnel mode): it seals the frames of a stream and opens those of a port.
//!
//! Inside is still the stream's own test frame, numbered and checked like any other. Slow ciphers cost no time of a
//! trial: their packets are sealed before it, and opened after it. This folder imports `count`, `frame` and `wire`.

pub mod association;
pub mod numbers;
pub mod opening;
pub mod sealed_ahead;
pub mod sealer;
pub mod sealing;
pub mod suite;
#[cfg(test)]
mod vector_tests;
