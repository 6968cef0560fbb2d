// SPDX-License-Identifier: Apache-2.0
//! Trials in real time: the threads that send and receive at open ports, and watch for stalls.
//!
//! This folder imports `port` and `trial`.

mod crew;
mod departed;
mod esp_ports;
mod lanes;
mod port_counters;
pub mod real_trial;
mod watch;
