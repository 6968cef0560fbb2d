// SPDX-License-Identifier: Apache-2.0
//! Sending and receiving inside the kernel, by XDP programs (bpf/): no socket and, when sending, no skb.

pub mod features;
pub mod layout;
pub mod object;
pub mod receiver;
pub mod sender;

pub use layout::Key;
