// SPDX-License-Identifier: Apache-2.0
//! Counting, without any packet: sequence numbers, times of arrival, histograms, stalls. Everything here is pure.
//!
//! This folder imports `protocol`.

pub mod arrivals;
pub mod histogram;
pub mod live;
pub mod sequence;
pub mod tx_stalls;
