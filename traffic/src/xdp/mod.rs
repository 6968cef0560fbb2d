// SPDX-License-Identifier: Apache-2.0
//! The XDP programs of bpf/: loading them, the maps that they share with the generator, and the features of drivers.
//!
//! `send` and `receive` use the programs, which need no socket and, for sending, no skb; `wire` uses one for AF_XDP.
//! This folder imports `count`, `frame` and `host`.

pub mod features;
pub mod layout;
pub mod object;
