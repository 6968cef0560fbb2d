// SPDX-License-Identifier: Apache-2.0
//! The machine on which the generator runs: clocks, threads, signals, stalls, CPU speed, network namespaces, netlink.
//!
//! This folder imports `protocol`.

pub mod clock;
pub mod cpu_speed;
pub mod host_stalls;
pub mod netlink;
pub mod netns;
pub mod signals;
pub mod threads;
