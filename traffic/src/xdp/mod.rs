// SPDX-License-Identifier: Apache-2.0
//! The programs of bpf/: loading them, the maps they share with this program, and what a driver can do with them.
//!
//! `send` and `receive` use them: no socket is needed and, when sending, no skb. This folder imports `count`, `frame`
//! and `host`.

pub mod features;
pub mod layout;
pub mod object;
