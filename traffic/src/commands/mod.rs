// SPDX-License-Identifier: Apache-2.0
//! The commands of the program: `serve`, `trial`, `wire` and `link`.
//!
//! This folder imports everything else; nothing imports it.

pub mod cli;
mod erring;
mod output;
pub mod serve;
mod session;
pub mod shell_trial;
mod taps;
pub mod wire;
