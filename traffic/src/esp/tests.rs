// SPDX-License-Identifier: Apache-2.0
//! Sealing and opening against published vectors, against Scapy's packets, and against each other.

use crate::esp::Numbers;
use crate::esp::association::{self, Sa};
use crate::esp::opening::Opening;
use crate::esp::ready;
use crate::esp::sealing::{Sealer, Sealing};
use crate::esp::suite::{HEADER, Keyed, Suite};
use crate::frame::tests::stream;
use crate::frame::{RunKey, Template};
use crate::frames::Frames;
use crate::pace::Schedule;
use crate::port::RxFrame;
use crate::protocol::{Association, EspCounts, Fault, Stream};
use crate::receiver::{PortCount, StreamCount};
use crate::sender::Outgoing;
use crate::verify::Expected;

const FIRST: u64 = 1000;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_whitespace().collect();
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
        .collect()
}

fn hex(bytes: impl IntoIterator<Item = u8>) -> String {
    bytes.into_iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An SA whose keys count upwards, as those of the packets below.
fn association(suite: &str, spi: u32) -> Association {
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

const SUITES: [&str; 8] = [
    "null-null",
    "null-sha1",
    "3des-sha1",
    "aes128-sha1",
    "aes256-sha256",
    "aes128gcm16",
    "aes256gcm16",
    "chacha20poly1305",
];

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

/// RFC 7634, appendix A: a whole ESP packet of ChaCha20-Poly1305, padding and all.
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

/// Scapy, which shares no code with this, sealed this packet with each suite; opened and sealed again it is the same.
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

/// A stream that is sealed by one set of SAs and opened by another.
fn through(seal: &[Association], open: &[Association]) -> Stream {
    Stream {
        tunnels: seal.len() as u16,
        tunnel_bits: 26,
        seal: seal.to_vec(),
        open: open.to_vec(),
        ..stream(4, &[64, 594])
    }
}

fn sealing(asked: &Stream, numbers: &Numbers) -> (Template, Sealing) {
    let template = Template::new(asked, RunKey::new(1, 2)).unwrap();
    let sealer = Sealer::of(asked, &template, numbers, 1000).unwrap().unwrap();
    let sealing = Sealing::new(sealer, &template);
    (template, sealing)
}

/// Frames `indexes` of a stream, sealed, in that order.
fn sealed(asked: &Stream, numbers: &Numbers, indexes: &[u64]) -> Vec<Vec<u8>> {
    let (template, mut sealing) = sealing(asked, numbers);
    let one = |&index: &u64| {
        let mut out = vec![0; 2000];
        let length = sealing.write(&template, &mut out, index, FIRST + index, 77);
        out.truncate(length);
        out
    };
    indexes.iter().map(one).collect()
}

fn port(asked: &Stream, numbers: &Numbers) -> PortCount {
    let key = RunKey::new(1, 2);
    let template = Template::new(asked, key).unwrap();
    let mut count = PortCount::default();
    count.opening = Opening::of([asked].into_iter(), numbers).unwrap().map(Box::new);
    let came = StreamCount::new(0, 1_000_000, None, Default::default()).unwrap();
    count.expect(0, Expected::new(asked, &template, key, FIRST, 1000), came, None);
    count
}

fn arrive(count: &mut PortCount, frames: &[Vec<u8>]) {
    for bytes in frames {
        count.count(&RxFrame {
            bytes,
            wire_length: bytes.len(),
            at_ns: 1000,
            checksum_pending: false,
            vlan_tagged: false,
        });
    }
}

/// (received, duplicated, corrupted) and what the SAs say.
fn told(mut count: PortCount) -> ((u64, u64, u64), EspCounts) {
    count.open_kept(&mut |_, _| true);
    let counts = count.opening.as_mut().unwrap().close(&mut Numbers::default());
    let sequence = &count.streams[0].sequence;
    (
        (sequence.received, sequence.duplicated, sequence.corrupted),
        counts,
    )
}

/// Every frame of every suite, of both sizes, through one and through three SAs, arrives intact and is numbered
/// from 1 on; whether it is opened at once or afterwards.
#[test]
fn what_is_sealed_can_be_opened() {
    for (suite, count, keeps) in SUITES
        .iter()
        .flat_map(|suite| [(suite, 1, false), (suite, 3, false), (suite, 3, true)])
    {
        let sas: Vec<_> = (0..count).map(|n| association(suite, 0x1000 + n)).collect();
        let asked = through(&sas, &sas);
        let numbers = Numbers::default();
        let indexes: Vec<u64> = (0..60).collect();
        let frames = sealed(&asked, &numbers, &indexes);
        let mut port = port(&asked, &numbers);
        if keeps {
            port.opening.as_mut().unwrap().keep(1 << 20);
        }
        arrive(&mut port, &frames);
        let expected = EspCounts {
            packets: 60,
            authentic: 60,
            opened_after: keeps,
            ..EspCounts::default()
        };
        assert_eq!(told(port), ((60, 0, 0), expected), "{suite}");
        for (index, frame) in frames.iter().enumerate() {
            let found = association::find(frame).unwrap();
            let (spi, number) = (0x1000 + index as u32 % count, 1 + index as u32 / count);
            assert_eq!((found.spi, found.number), (spi, number));
        }
    }
}

/// Lost, repeated and overtaken packets are told from their numbers; a trial's old ones are old in the next.
#[test]
fn numbers_tell_what_happened() {
    let sas = [association("aes128gcm16", 0x1000)];
    let asked = through(&sas, &sas);
    let mut numbers = Numbers::default();
    let mut first = port(&asked, &numbers);
    arrive(&mut first, &sealed(&asked, &numbers, &[0, 1, 5, 4, 4, 8]));
    let ((received, duplicated, corrupted), counts) = told(first);
    assert_eq!((received, duplicated, corrupted), (5, 1, 0));
    assert_eq!((counts.gaps, counts.repeated, counts.not_rising), (4, 1, 1));
    numbers.opened(&sas[0], 9);
    let mut second = port(&asked, &numbers);
    arrive(&mut second, &sealed(&asked, &numbers, &[8, 9, 10]));
    let ((received, duplicated, _), counts) = told(second);
    assert_eq!((received, duplicated, counts.old, counts.gaps), (2, 1, 1, 0));
}

/// A flipped bit anywhere in the ESP of a suite with integrity is seen, and no such frame counts as received.
#[test]
fn every_flipped_bit_is_seen() {
    for suite in &SUITES[1..] {
        let sas = [association(suite, 0x1000)];
        let asked = through(&sas, &sas);
        let numbers = Numbers::default();
        let frame = sealed(&asked, &numbers, &[0]).remove(0);
        let mut port = port(&asked, &numbers);
        for bit in 34 * 8..frame.len() * 8 {
            let mut hurt = frame.clone();
            hurt[bit / 8] ^= 1 << (bit % 8);
            arrive(&mut port, &[hurt]);
        }
        let flipped = (frame.len() as u64 - 34) * 8;
        let foreign = port.foreign;
        let ((received, _, corrupted), counts) = told(port);
        assert_eq!((received, counts.authentic), (0, 0), "{suite}");
        assert_eq!(
            (counts.unknown_spi, counts.bad_icv),
            (32, flipped - 32),
            "{suite}"
        );
        assert_eq!((corrupted, foreign), (flipped - 32, 32), "{suite}");
    }
}

/// A wrong key, a wrong SPI, wrong addresses, cleartext, a fragment and an inner packet of another run: each is told.
#[test]
fn what_is_not_as_agreed_is_told() {
    let ours = [association("aes128-sha1", 0x1000)];
    let numbers = Numbers::default();
    let asked = through(&ours, &ours);
    let outcome = |frames: &[Vec<u8>]| {
        let mut port = port(&asked, &numbers);
        arrive(&mut port, frames);
        let foreign = port.foreign;
        let (counted, esp) = told(port);
        (counted, foreign, esp)
    };
    let none = EspCounts::default();
    let counted = |counts: &EspCounts| EspCounts {
        packets: 1,
        ..counts.clone()
    };

    let mut others = ours.clone();
    others[0].integrity_key = serde_json::from_value(hex(1..=20).into()).unwrap();
    let wrong_key = sealed(&through(&others, &[]), &numbers, &[0]);
    let expected = EspCounts {
        bad_icv: 1,
        ..counted(&none)
    };
    assert_eq!(outcome(&wrong_key), ((0, 0, 1), 0, expected));

    let wrong_spi = sealed(
        &through(&[association("aes128-sha1", 0x2000)], &[]),
        &numbers,
        &[0],
    );
    let expected = EspCounts {
        unknown_spi: 1,
        ..none.clone()
    };
    assert_eq!(outcome(&wrong_spi), ((0, 0, 0), 1, expected));

    let mut elsewhere = ours.clone();
    elsewhere[0].source = "192.0.2.9".parse().unwrap();
    let expected = EspCounts {
        malformed: 1,
        ..none.clone()
    };
    let from_elsewhere = sealed(&through(&elsewhere, &[]), &numbers, &[0]);
    assert_eq!(outcome(&from_elsewhere), ((0, 0, 1), 0, expected.clone()));

    let mut fragment = sealed(&asked, &numbers, &[0]).remove(0);
    fragment[20] = 0x20;
    fragment[24] ^= 0x60; // mends the checksum
    assert_eq!(outcome(&[fragment]), ((0, 0, 1), 0, expected));

    let template = Template::new(&asked, RunKey::new(1, 2)).unwrap();
    let mut clear = template.bytes().to_vec();
    let length = template.write(&mut clear, 0, FIRST, 77);
    clear.truncate(length);
    let expected = EspCounts {
        cleartext: 1,
        ..none.clone()
    };
    assert_eq!(outcome(&[clear]), ((0, 0, 0), 0, expected));

    let sealer = Sealer::of(&asked, &template, &numbers, 9).unwrap().unwrap();
    let foreign = Template::new(&asked, RunKey::new(7, 7)).unwrap();
    let mut plain = foreign.bytes().to_vec();
    let length = foreign.write(&mut plain, 0, FIRST, 77);
    let mut out = vec![0; 2000];
    let length = sealer.seal(&plain[..length], 0, &mut out);
    out.truncate(length);
    let expected = EspCounts {
        authentic: 1,
        ..counted(&none)
    };
    assert_eq!(outcome(&[out]), ((0, 0, 0), 1, expected));
}

/// A forged packet is right but for its ICV, and numbered ahead; a replay bears the numbers that were used.
#[test]
fn faults_are_what_they_say() {
    let sas = [association("aes128gcm16", 0x1000)];
    let mut numbers = Numbers::default();
    numbers.sealed(&sas[0], 3);
    let mut asked = through(&sas, &sas);
    asked.fault = Some(Fault::BadIcv);
    let mut port_ = port(&asked, &numbers);
    let forged = sealed(&asked, &numbers, &[0, 1]);
    assert!(association::find(&forged[1]).unwrap().number > 1 << 30);
    arrive(&mut port_, &forged);
    assert_eq!(told(port_).1.bad_icv, 2);

    asked.fault = Some(Fault::Replay);
    let replayed = sealed(&asked, &numbers, &[0, 1, 2, 3]);
    let numbers_of: Vec<u32> = replayed
        .iter()
        .map(|f| association::find(f).unwrap().number)
        .collect();
    assert_eq!(numbers_of, [1, 2, 3, 1]);
    let (_, sealing) = sealing(&asked, &numbers);
    assert!(sealing.sealer.last_numbers(4).is_empty());

    let template = Template::new(&asked, RunKey::new(1, 2)).unwrap();
    let refused =
        |asked: &Stream, numbers: &Numbers| Sealer::of(asked, &template, numbers, 9).err().unwrap().message;
    assert!(refused(&asked, &Numbers::default()).contains("nothing was sent through its SA"));
    asked.fault = Some(Fault::BadIcv);
    asked.seal = vec![association("null-null", 0x1000)];
    assert!(refused(&asked, &numbers).contains("no ICV"));
}

/// Numbers go on where they ended, each SA's by itself, and a trial that would use them up is refused.
#[test]
fn numbers_go_on() {
    let sas: Vec<_> = (0..3).map(|n| association("aes128gcm16", 0x1000 + n)).collect();
    let asked = through(&sas, &sas);
    let mut numbers = Numbers::default();
    let (template, sealing) = sealing(&asked, &numbers);
    let last = sealing.sealer.last_numbers(7);
    assert_eq!(last, [3, 2, 2]);
    for (sa, last) in sas.iter().zip(last) {
        numbers.sealed(sa, last);
    }
    assert_eq!([0, 1, 2].map(|n| numbers.next(&sas[n])), [4, 3, 3]);
    numbers.sealed(&sas[0], u64::from(u32::MAX) - 10);
    let message = Sealer::of(&asked, &template, &numbers, 100)
        .err()
        .unwrap()
        .message;
    assert!(message.contains("32-bit"), "{message}");
}

/// What was sealed before the trial is, byte for byte but for the time, what is sealed on the fly; what does not fit
/// the memory is not sent, and the numbers are told.
#[test]
fn sealed_before_is_the_same() {
    let sas: Vec<_> = (0..3).map(|n| association("3des-sha1", 0x1000 + n)).collect();
    let asked = through(&sas, &sas);
    let make = |room: &mut usize| {
        let (template, sealing) = sealing(&asked, &Numbers::default());
        let frames = Frames::Sealed(template, Box::new(sealing));
        let schedule = Schedule::flood(0).burst(500);
        let mut stream = Outgoing::new(frames, schedule, FIRST, Default::default(), 0).unwrap();
        let told = ready::make(&mut stream, 1e9, room, &mut |_, _| true);
        (stream, told)
    };
    let mut room = 1 << 20;
    let (stream, told) = make(&mut room);
    assert_eq!((told, stream.most), (None, 500));
    let Frames::Sealed(template, mut sealing_) = stream.frames else {
        panic!("not sealed");
    };
    let ready = sealing_.ready.take().unwrap();
    let (mut before, mut now) = (vec![0; 2000], vec![0; 2000]);
    for index in 0..500 {
        let length = ready.write(&mut before, index, 5);
        assert_eq!(
            length,
            sealing_.write(&template, &mut now, index, FIRST + index, 0)
        );
        assert_eq!(before[..length], now[..length], "frame {index}");
    }
    assert_eq!(ready.departed[499].load(std::sync::atomic::Ordering::Relaxed), 5);
    assert!(room < (1 << 20) - 500 * 300);
    let mut room = 10_000;
    let (stream, told) = make(&mut room);
    assert!((20..40).contains(&stream.most), "{}", stream.most);
    assert!(
        told.unwrap()
            .contains(&format!("{} of 500 fit the memory", stream.most))
    );
    assert!(room < 1000);
}

/// Keys are in no text that could reach a log.
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
