// SPDX-License-Identifier: Apache-2.0
//! Tests of ESP, from a stream's sender to the counts of the receiving port.

use crate::esp::association;
use crate::esp::numbers::Numbers;
use crate::esp::opening::Opening;
use crate::esp::sealer::Sealer;
use crate::esp::sealing::Sealing;
use crate::frame::template::Template;
use crate::frame::test_header::RunKey;
use crate::protocol::sample::{association, hex, stream};
use crate::protocol::{Association, EspCounts, Fault, Stream};
use crate::receive::port_count::PortCount;
use crate::receive::stream_count::StreamCount;
use crate::receive::verify::Expected;
use crate::send::frame_source::Frames;
use crate::send::outgoing::Outgoing;
use crate::send::pace::Schedule;
use crate::trial::ciphers;
use crate::wire::RxFrame;

const FIRST: u64 = 1000;

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

/// Returns the sealed frames `indexes` of a stream, in that order.
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

/// Returns the numbers of an SA that has sealed packets up to `last`.
fn after(sa: &Association, last: u64) -> Numbers {
    let mut numbers = Numbers::default();
    numbers.sealed(sa, last);
    numbers
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

/// Returns (received, duplicated, corrupted) and the counts of the SAs.
fn told(mut count: PortCount) -> ((u64, u64, u64), EspCounts) {
    count.open_kept(&mut |_, _| true);
    let counts = count.opening.as_mut().unwrap().close(&mut Numbers::default());
    let sequence = &count.streams[0].sequence;
    (
        (sequence.received, sequence.duplicated, sequence.corrupted),
        counts,
    )
}

/// Every frame of every suite, of both sizes, through one and through three SAs, arrives intact, and the sequence
/// numbers begin at 1. This holds if packets are opened at once, and if they are opened after the trial.
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

/// Lost, repeated and reordered packets are counted by their sequence numbers; packets of one trial are old in the
/// next.
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

/// Without an ICV, a packet with a damaged sequence number makes no later packet old. A jump of the numbers that the
/// next packet confirms is noted, and nothing of it is lost.
#[test]
fn a_damaged_number_without_icv_spoils_no_later_packet() {
    let sas = [association("null-null", 0x1000)];
    let asked = through(&sas, &sas);
    let mut numbers = Numbers::default();
    let mut frames = sealed(&asked, &numbers, &[0, 1, 2, 3]);
    frames[1][38] ^= 0x40;
    for (frames, received, gaps, highest) in [
        (frames, 4, 1, 4),
        (
            sealed(&asked, &after(&sas[0], 100_000), &[0, 1, 2]),
            3,
            0,
            100_003,
        ),
        (sealed(&asked, &after(&sas[0], 100_003), &[0]), 1, 0, 100_004),
    ] {
        let mut port = port(&asked, &numbers);
        arrive(&mut port, &frames);
        let counts = port.opening.as_mut().unwrap().close(&mut numbers);
        assert_eq!((counts.authentic, counts.old, counts.repeated), (received, 0, 0));
        assert_eq!(port.streams[0].sequence.received, received);
        assert_eq!((counts.gaps, numbers.highest(&sas[0])), (gaps, highest));
    }
}

/// A flipped bit anywhere in the ESP of a suite with integrity is detected, and no such frame counts as received.
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

/// Returns (received, duplicated, corrupted), the number of foreign frames, and the counts of the SAs.
fn outcome(asked: &Stream, frames: &[Vec<u8>]) -> ((u64, u64, u64), u64, EspCounts) {
    let mut port = port(asked, &Numbers::default());
    arrive(&mut port, frames);
    let foreign = port.foreign;
    let (counted, esp) = told(port);
    (counted, foreign, esp)
}

/// A wrong key, a wrong SPI, wrong addresses and a fragment are each counted as such.
#[test]
fn what_is_not_as_agreed_is_told() {
    let ours = [association("aes128-sha1", 0x1000)];
    let numbers = Numbers::default();
    let asked = through(&ours, &ours);
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
    assert_eq!(outcome(&asked, &wrong_key), ((0, 0, 1), 0, expected));

    let wrong_spi = sealed(
        &through(&[association("aes128-sha1", 0x2000)], &[]),
        &numbers,
        &[0],
    );
    let expected = EspCounts {
        unknown_spi: 1,
        ..none.clone()
    };
    assert_eq!(outcome(&asked, &wrong_spi), ((0, 0, 0), 1, expected));

    let mut elsewhere = ours.clone();
    elsewhere[0].source = "192.0.2.9".parse().unwrap();
    let expected = EspCounts {
        malformed: 1,
        ..none.clone()
    };
    let from_elsewhere = sealed(&through(&elsewhere, &[]), &numbers, &[0]);
    assert_eq!(outcome(&asked, &from_elsewhere), ((0, 0, 1), 0, expected.clone()));

    let mut fragment = sealed(&asked, &numbers, &[0]).remove(0);
    fragment[20] = 0x20;
    fragment[24] ^= 0x60; // corrects the checksum
    assert_eq!(outcome(&asked, &[fragment]), ((0, 0, 1), 0, expected));
}

/// Cleartext and an inner packet of another run are each counted as such.
#[test]
fn what_is_not_of_this_run_is_told() {
    let ours = [association("aes128-sha1", 0x1000)];
    let numbers = Numbers::default();
    let asked = through(&ours, &ours);
    let template = Template::new(&asked, RunKey::new(1, 2)).unwrap();
    let mut clear = template.bytes().to_vec();
    let length = template.write(&mut clear, 0, FIRST, 77);
    clear.truncate(length);
    let expected = EspCounts {
        cleartext: 1,
        ..EspCounts::default()
    };
    assert_eq!(outcome(&asked, &[clear]), ((0, 0, 0), 0, expected));

    let sealer = Sealer::of(&asked, &template, &numbers, 9).unwrap().unwrap();
    let foreign = Template::new(&asked, RunKey::new(7, 7)).unwrap();
    let mut plain = foreign.bytes().to_vec();
    let length = foreign.write(&mut plain, 0, FIRST, 77);
    let mut out = vec![0; 2000];
    let length = sealer.seal(&plain[..length], 0, &mut out);
    out.truncate(length);
    let expected = EspCounts {
        packets: 1,
        authentic: 1,
        ..EspCounts::default()
    };
    assert_eq!(outcome(&asked, &[out]), ((0, 0, 0), 1, expected));
}

/// A forged packet is right except for its ICV, and its sequence number is far ahead; a replay has numbers that were
/// used.
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

/// The sequence numbers of each SA continue from trial to trial, and a trial that could exhaust them is refused.
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

/// Frames sealed before the trial have the same bytes, except for the time, as those sealed when they leave. Frames
/// that do not fit into the memory are not sent, and the returned reason says how many.
#[test]
fn sealed_before_is_the_same() {
    let sas: Vec<_> = (0..3).map(|n| association("3des-sha1", 0x1000 + n)).collect();
    let asked = through(&sas, &sas);
    let make = |room: &mut usize| {
        let (template, sealing) = sealing(&asked, &Numbers::default());
        let frames = Frames::Sealed(template, Box::new(sealing));
        let schedule = Schedule::flood(0).burst(500);
        let mut stream = Outgoing::new(frames, schedule, FIRST, Default::default(), 0).unwrap();
        let told = ciphers::make_ready(&mut stream, 1e9, room, &mut |_, _| true);
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
