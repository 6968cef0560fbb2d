// SPDX-License-Identifier: Apache-2.0
//! Tests of sealing and opening, against published vectors and against Scapy's packets.

use crate::esp::association::{self, Sa};
use crate::esp::suite::{HEADER, Keyed};
use crate::protocol::sample::{association, hex};
use crate::protocol::{Association, Suite};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_whitespace().collect();
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
        .collect()
}

/// draft-mcgrew-gcm-test-01: AES-GCM as ESP uses it, 128 bits with an extended sequence number, and 256 bits.
#[test]
fn vectors_of_rfc_4106() {
    for (suite, key, esn, high, packet, payload) in [
        (
            Suite::Aes128Gcm16,
            "4c80cdefbb5d10da906ac73c3613a634 2e443b68",
            true,
            0x8765_4321,
            "00004321 00000000 4956ed7e3b244cfe
             fecf537e729d5b07dc30df528dd22b768d1b98736696a6fd348509fa13ceac34
             cfa2436f14a3f3cf65925bf1f4a13c5d15b21e1884f5ff6247aeabb786b93bce
             61bc17d768fd9732 459018148f6cbe722fd04796562dfdb4",
            "45000048699a000080114db7c0a80102c0a801010a9bf15638d3010000010000
             00000000045f736970045f756470037369700963796265726369747902646b00
             0021000101020201",
        ),
        (
            Suite::Aes256Gcm16,
            "abbccddef00112233445566778899aababbccddef00112233445566778899aab 11223344",
            false,
            0,
            "4a2cbfe3 00000002 0102030405060708
             ff425c9b724599df7a3bcd510194e00d6a78107f1b0b1cbf06efae9d65a5d763
             748a637985771d347f0545659f14e99def842d8e b335f4eecfdbf831824b4c4915956c96",
            "4500003069a6400080062690c0a801029389155e0a9e008b2dc57ee000000000
             7002400020bf0000020405b40101040201020201",
        ),
    ] {
        let keyed = Keyed::new(suite, esn, &bytes(key), &[]).unwrap();
        let (mut packet, payload) = (bytes(packet), bytes(payload));
        let sealed = packet.clone();
        assert!(keyed.open(&mut packet, high), "{suite:?}");
        assert_eq!(packet[16..16 + payload.len()], payload);
        keyed.seal(&mut packet, high);
        assert_eq!(packet, sealed);
        assert_eq!(
            keyed.open(&mut packet, high ^ 1),
            !esn,
            "the high half is authenticated with ESN"
        );
    }
}

/// RFC 7634, appendix A: a whole ESP packet of ChaCha20-Poly1305, with its padding.
#[test]
fn packet_of_rfc_7634() {
    let key: Vec<u8> = (0x80..0xa4).collect();
    let keyed = Keyed::new(Suite::ChaCha20Poly1305, false, &key, &[]).unwrap();
    let sealed = bytes(
        "01020304 00000005 1011121314151617
         24039428b97f417e3c13753a4f05087b67c352e6a7fab1b982d466ef407ae5c6
         14ee8099d52844eb61aa95dfab4c02f72aa71e7c4c4f64c9befe2facc638e8f3
         cbec163fac469b502773f6fb94e664da9165b82829f641e0 76aaa8266b7fb0f7b11b369907e1ad43",
    );
    let mut packet = sealed.clone();
    assert!(keyed.open(&mut packet, 0));
    let inner = association::inner(&packet[16..packet.len() - 16]).unwrap();
    assert_eq!((inner.len(), hex(inner[..4].to_vec())), (84, "45000054".into()));
    keyed.seal(&mut packet, 0);
    assert_eq!(packet, sealed);
}

/// Scapy, which shares no code with this program, sealed this packet with each suite. When it is opened and sealed
/// again, it is the same.
#[test]
fn packets_of_scapy() {
    let inner = "45000024000700004011ee98c6120002c6130002c0200007001014d065737062656e6368";
    for (name, packet) in [
        (
            "null-null",
            "45000044000040004032b684c0000201c0000202000012340000000545000024000700004011ee98c6120002c6130002c0200007001014d065737062656e636801020204",
        ),
        (
            "null-sha1",
            "45000050000040004032b678c0000201c0000202000012340000000545000024000700004011ee98c6120002c6130002c0200007001014d065737062656e636801020204be494ab4889c46436ad487a8",
        ),
        (
            "3des-sha1",
            "45000058000040004032b670c0000201c00002020000123400000005c8c9cacbcccdcecf7d97922a013557e7c6c8d43daf4eaecd715301b8ca5d73416ec8d6f536c6f5d0130d2424829de47617a7a22105e5101ed720f3ac",
        ),
        (
            "aes128-sha1",
            "45000068000040004032b660c0000201c00002020000123400000005c8c9cacbcccdcecfd0d1d2d3d4d5d6d7ccdbcddb07adf63cfb6379d3338e3fbba91f2cb10c847fa805e01a0890413dd358dd49587ff6c367f4e1ddf957d2ebf6a0ea6e2a76b8f56a3646534f",
        ),
        (
            "aes256-sha256",
            "4500006c000040004032b65cc0000201c00002020000123400000005c8c9cacbcccdcecfd0d1d2d3d4d5d6d790551200ab5402e5ce52ad5ad0539e484e5233ab5e16c323b408908a59ab532c3ac2ab88d7d9a858c25a0f0df16810d353b3dd8fbadeba3eefcbe4d9065d8ce1",
        ),
        (
            "aes128gcm16",
            "4500005c000040004032b66cc0000201c00002020000123400000005c8c9cacbcccdcecf9a15a5b61790c55f0e7f52c10d306748c3d495ab167625eefe748de18c9d766fcbcb900282e29a00d6f11d127c129cda3e28c9eb2e13d079",
        ),
        (
            "aes256gcm16",
            "4500005c000040004032b66cc0000201c00002020000123400000005c8c9cacbcccdcecfdbfb9d9a45921ffb1ee41bfcac7c4309bedc72d9786093ddb94dc123613c3ed3680e30c11ee814e16be9e493d563deafd2b0c9d4b10b3062",
        ),
        (
            "chacha20poly1305",
            "4500005c000040004032b66cc0000201c00002020000123400000005c8c9cacbcccdcecfb40c347a28d2ace1166103f4be05f2f8189db358e8a8c2e1bc3ae35a6f787091bb28b9929f7467369d65a7ea0a064156e6762a8760c7c101",
        ),
    ] {
        let sa = Sa::new(&association(name, 0x1234)).unwrap();
        let frame = [bytes("020000000001020000000002 0800"), bytes(packet)].concat();
        let found = association::find(&frame).unwrap();
        assert_eq!(
            (found.spi, found.number, found.end),
            (0x1234, 5, frame.len()),
            "{name}"
        );
        assert!(sa.addresses_are(&frame[14..]));
        let mut esp = frame[found.from..].to_vec();
        assert!(sa.keyed.open(&mut esp, 0), "{name}");
        let suite = sa.keyed.suite;
        let payload = &esp[HEADER + suite.iv_bytes()..esp.len() - suite.icv_bytes()];
        assert_eq!(
            hex(association::inner(payload).unwrap().to_vec()),
            inner,
            "{name}"
        );
        sa.keyed.seal(&mut esp, 0);
        assert_eq!(esp, frame[found.from..], "{name}");
        let mut own = vec![0; sa.packet_bytes(bytes(inner).len())];
        sa.seal(&bytes(inner), 5, &mut own);
        assert_eq!(own[..20], frame[14..34], "{name}: outer header");
    }
}

/// No text that could reach a log contains a key.
#[test]
fn keys_show_themselves_to_nobody() {
    let shown = format!("{:?}", association("aes128gcm16", 0x1000));
    assert!(
        shown.contains("(20 bytes)") && !shown.contains("01020304"),
        "{shown}"
    );
    let text = r#"{"spi":4096,"source":"192.0.2.1","destination":"192.0.2.2","suite":"aes128gcm16","encryption_key":"secrets!"}"#;
    for text in [text, &text.replace("\"secrets!\"", "12345678")] {
        let message = serde_json::from_str::<Association>(text).unwrap_err().to_string();
        assert!(
            !message.contains("secrets") && !message.contains("12345678"),
            "{message}"
        );
    }
}
