// SPDX-License-Identifier: Apache-2.0
//! A stream and an SA for tests.

use crate::protocol::trial_request::{Association, FrameShare, Stream};

/// Makes a stream from west to east with one frame of each size in turn.
pub fn stream(ip_version: u8, sizes: &[usize]) -> Stream {
    let (src, dst) = if ip_version == 6 {
        ("2001:2::2", "2001:2:0:8000::2")
    } else {
        ("198.18.0.2", "198.19.0.2")
    };
    Stream {
        id: 3,
        from: "west".into(),
        to: "east".into(),
        rate_fps: None,
        steps: Vec::new(),
        burst_frames: None,
        leeway: 0.0,
        tag_at_s: None,
        gaps_over_s: None,
        frames: sizes
            .iter()
            .map(|&size| FrameShare {
                size,
                weight: 1,
                header: 0,
            })
            .collect(),
        src_mac: "02:00:00:00:00:01".into(),
        dst_mac: "02:00:00:00:00:02".into(),
        ip_version,
        src: src.parse().unwrap(),
        dst: dst.parse().unwrap(),
        dont_fragment: false,
        ttl: 64,
        src_port: 49184,
        dst_port: 7,
        networks: 1,
        tunnels: 1,
        tunnel_bits: 0,
        ports: 1,
        headers: Vec::new(),
        seal: Vec::new(),
        open: Vec::new(),
        fault: None,
    }
}

/// Writes bytes as hexadecimal text.
pub fn hex(bytes: impl IntoIterator<Item = u8>) -> String {
    bytes.into_iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Makes an SA whose keys are bytes that count upwards.
pub fn association(suite: &str, spi: u32) -> Association {
    let (encryption, integrity) = match suite {
        "null-null" => (0, 0),
        "null-sha1" => (0, 20),
        "3des-sha1" => (24, 20),
        "aes128-sha1" => (16, 20),
        "aes256-sha256" => (32, 32),
        "aes128gcm16" => (20, 0),
        _ => (36, 0),
    };
    serde_json::from_value(serde_json::json!({
        "spi": spi, "source": "192.0.2.1", "destination": "192.0.2.2", "suite": suite,
        "encryption_key": hex(1..=encryption), "integrity_key": hex(100..100 + integrity),
    }))
    .unwrap()
}
