// SPDX-License-Identifier: Apache-2.0
//! Counting: sequence numbers, times of arrival, histograms, stalls. All functions are pure and read no packet.
//!
//! This folder imports `protocol`.

pub mod arrivals;
pub mod histogram;
pub mod live;
pub mod sequence;
pub mod tx_stalls;
