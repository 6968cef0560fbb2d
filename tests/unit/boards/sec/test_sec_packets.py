# SPDX-License-Identifier: Apache-2.0
"""The SEC model: cipher and digest in one pass, scattered data."""

from __future__ import annotations

import random
import struct

import pytest

from support.sec import console as c
from support.sec.console import Make, Pointer, Sec
from support.sec.descriptors import (
    HEADER,
    Packet,
    aes_pointers,
    cipher_header,
    data,
    error_of,
    esp,
    expected_cipher,
    inbound_room,
    pieces,
    versions_with,
)

pytestmark = pytest.mark.needs("gcc", "nettle-dev")

SUITES = [(cipher, digest, icv) for cipher in ("3des", "aes") for digest, icv in
          (("md5", 12), ("sha1", 12), ("sha224", 14), ("sha256", 16), ("sha384", 24), ("sha512", 32))]  # fmt: skip


@pytest.mark.parametrize(("cipher", "digest", "icv"), SUITES)
def test_esp_outbound_in_one_pass(make: Make, cipher: str, digest: str, icv: int) -> None:
    for version in versions_with(digest):
        sec, packet = make(version=version), Packet(cipher, digest, icv)
        out = sec.room(len(packet.text), extent=icv)
        pointers = esp(sec, packet, sec.at(packet.text), out)
        assert sec.run(packet.header(c.ESP, encrypt=True), pointers) == 0
        assert sec.got(out) == packet.secret + packet.icv
        assert sec.got(pointers[6]) == packet.secret[-len(packet.iv) :]


@pytest.mark.parametrize(("cipher", "digest", "icv"), SUITES)
def test_esp_inbound_in_one_pass_and_the_unit_checks_the_icv(
    make: Make, cipher: str, digest: str, icv: int
) -> None:
    """A flipped bit in the ICV, in the data or in the header is reported; the data are there all the same."""
    sec, packet = make(version="3.0"), Packet(cipher, digest, icv)
    whole = packet.secret + packet.icv
    for bit in (None, 0, 8 * len(packet.secret) - 1, 8 * len(packet.secret), 8 * len(whole) - 1):
        wire = bytearray(whole)
        if bit is not None:
            wire[bit // 8] ^= 1 << bit % 8
        out, segments = inbound_room(sec, packet)
        pointers = esp(sec, packet, sec.at(bytes(wire), extent=icv), out)
        low = sec.run(packet.header(c.ESP, encrypt=False, check=True), pointers)
        assert low == (c.ICV_PASS if bit is None else c.ICV_FAIL)
        if bit is None or bit >= 8 * len(packet.secret):
            assert sec.gathered(segments) == packet.text + packet.icv


def test_esp_inbound_where_software_compares(make: Make) -> None:
    """Without CICV (SEC 2.0 has none) the computed ICV stands in the last segment, and no verdict is written."""
    sec, packet = make(version="2.0"), Packet("3des", "sha1", 12)
    out, segments = inbound_room(sec, packet)
    pointers = esp(sec, packet, sec.at(packet.secret), out)
    assert sec.run(packet.header(c.ESP, encrypt=False), pointers) == 0
    assert sec.gathered(segments) == packet.text + packet.icv


def test_a_model_told_to_err_errs_in_one_bit(make: Make) -> None:
    """The guest's self-tests are tried with it: each ICV has a wrong bit, so none is found right."""
    sec, packet = make(flip_icv=True), Packet("3des", "sha1", 12)
    out = sec.room(512, extent=12)
    sec.run(packet.header(c.ESP, encrypt=True), esp(sec, packet, sec.at(packet.text), out))
    assert sec.got(out) == packet.secret + bytes([packet.icv[0] ^ 1]) + packet.icv[1:]
    source = sec.at(packet.secret + packet.icv, extent=12)
    pointers = esp(sec, packet, source, inbound_room(sec, packet)[0])
    assert sec.run(packet.header(c.ESP, encrypt=False, check=True), pointers) == c.ICV_FAIL


@pytest.mark.parametrize(("config", "expected"), [(0x20, b"\0"), (0xA0, b"\x10"), (0x28, b"\x10")])
def test_the_verdict_is_written_where_the_channel_is_to_write_it(
    sec: Sec, config: int, expected: bytes
) -> None:
    """CCR: neither, IWSE, AWSE; without CDWE the rest of the header stays as it was."""
    packet = Packet("3des", "sha1", 12)
    sec.write(sec.channel(0, c.CCR) + 4, config)
    source = sec.at(packet.secret + bytes(12), extent=12)
    header = packet.header(c.ESP, encrypt=False, check=True)
    address = sec.submit(header, esp(sec, packet, source, inbound_room(sec, packet)[0]))
    sec.idle()
    assert sec.get(address, 8) == struct.pack(">I", header) + b"\0" + expected + b"\0\0"


def test_a_wrong_icv_is_the_units_error_where_it_is_not_masked(sec: Sec) -> None:
    packet = Packet("3des", "sha1", 12)
    sec.write(c.MDEU + c.EU_ICR + 4, 0)
    out, segments = inbound_room(sec, packet)
    pointers = esp(sec, packet, sec.at(packet.secret + bytes(12), extent=12), out)
    address = sec.submit(packet.header(c.ESP, encrypt=False, check=True) | c.NOTIFY, pointers)
    sec.idle()
    assert sec.error() == c.EU
    assert sec.read(c.MDEU + c.EU_ISR + 4) == c.ICE
    assert sec.read64(c.ISR) == 2 << 32
    assert sec.get(address, 1) != b"\xff"
    assert sec.gathered(segments) == b"\xee" * (len(packet.text) + 12)


@pytest.mark.parametrize("cipher", ["3des", "aes"])
def test_hmac_snoop(sec: Sec, cipher: str) -> None:
    """The other way to one pass (…-hsna): other pointers, the ICV behind one of its own."""
    packet = Packet(cipher, "sha1", 12)
    for encrypt in (True, False):
        source, target = (packet.text, packet.secret) if encrypt else (packet.secret, packet.text)
        out, icv = sec.room(len(target)), sec.room(12)
        pointers = [sec.at(packet.hash_key), sec.at(HEADER), sec.at(packet.key), sec.at(packet.iv), sec.at(source),
                    out, icv]  # fmt: skip
        assert sec.run(packet.header(c.HSNA, encrypt), pointers) == 0
        assert sec.got(out) == target
        assert sec.got(icv) == packet.icv


def test_input_and_output_may_be_the_same_memory(sec: Sec) -> None:
    packet = Packet("aes", "sha256", 16)
    place = sec.at(packet.text + bytes(16), extent=16)
    pointers = esp(sec, packet, Pointer(place.address, place.length), place)
    sec.run(packet.header(c.ESP, encrypt=True), pointers)
    assert sec.got(place) == packet.secret + packet.icv


@pytest.mark.parametrize("base", [0, c.HIGH], ids=["32-bit", "36-bit"])
def test_data_are_gathered_and_scattered(sec: Sec, base: int) -> None:
    """Segments of any size; the ICV behind its own segment; every address above 4 GiB."""
    packet = Packet("3des", "sha1", 12)
    source, _ = sec.gather(pieces(packet.text, 1, 8, 77, 300), base=base)
    segments = [sec.room(n, base) for n in (5, 300, 207, 12)]
    out = Pointer(sec.table(segments, base), 512, c.JUMP | 12)
    pointers = esp(sec, packet, source, out, base)
    pointers[1], _ = sec.gather(pieces(HEADER, 3), base=base)
    sec.run(packet.header(c.ESP, encrypt=True), pointers, base)
    assert sec.gathered(segments) == packet.secret + packet.icv

    source, _ = sec.gather([*pieces(packet.secret, 100, 101), packet.icv], extent=12, base=base)
    back, segments = inbound_room(sec, packet)
    pointers = esp(sec, packet, source, back, base)
    assert sec.run(packet.header(c.ESP, encrypt=False, check=True), pointers, base) == c.ICV_PASS
    assert sec.gathered(segments) == packet.text + packet.icv


def test_without_36_bit_addresses_the_high_bits_do_not_count(sec: Sec) -> None:
    """Neither in pointers nor in the fetch FIFO."""
    sec.write(sec.channel(0, c.CCR) + 4, 0x10 | 0x02)
    out = sec.room(24)
    key, text = sec.at(bytes(range(24))), sec.at(bytes(24))
    seven = [Pointer(), Pointer(), key, text, Pointer(out.address | c.HIGH, 24), Pointer(), Pointer()]
    words = (
        struct.pack(">II", cipher_header("3des", "ecb", True), 0),
        *(pointer.packed() for pointer in seven),
    )
    address = sec.put(b"".join(words))
    sec.fetch(address | c.HIGH)
    sec.idle()
    assert sec.get(address, 1) == b"\xff"
    assert sec.got(out) == expected_cipher("3des", "ecb", bytes(range(24)), b"", bytes(24))


def test_link_tables_continue_in_others(sec: Sec) -> None:
    text = data(1, 64)
    first, second = sec.at(text[:40]), sec.at(text[40:])
    last = sec.put(Pointer(second.address, 24, c.LAST).packed())
    middle = sec.put(Pointer(last, 0, c.NEXT).packed())
    table = sec.put(Pointer(first.address, 40).packed() + Pointer(middle, 0, c.NEXT).packed())
    out = sec.room(64)
    key = data(2, 16)
    sec.run(cipher_header("aes", "ecb", True),
            [Pointer(), Pointer(), sec.at(key), Pointer(table, 64, c.JUMP), out])  # fmt: skip
    assert sec.got(out) == expected_cipher("aes", "ecb", key, b"", text)


def test_faults_of_link_tables_are_named(sec: Sec) -> None:
    header = cipher_header("aes", "ecb", True)
    good, out = sec.at(bytes(64)), sec.room(64)

    def table(*entries: Pointer) -> Pointer:
        return Pointer(sec.put(b"".join(entry.packed() for entry in entries)), 64, c.JUMP)

    short = table(Pointer(good.address, 48, c.LAST))
    empty = table(Pointer(good.address, 48), Pointer(good.address, 0), Pointer(good.address, 16, c.LAST))
    loop = table(Pointer(sec.free[0], 0, c.NEXT))
    nowhere = table(Pointer(0x7_0000_0000, 64, c.LAST))
    assert error_of(sec, header, aes_pointers(sec, short, out)) == c.GRL
    assert error_of(sec, header, aes_pointers(sec, good, short)) == c.SRL
    assert error_of(sec, header, aes_pointers(sec, empty, out)) == c.SGDLZ
    assert error_of(sec, header, aes_pointers(sec, good, empty)) == c.SGDLZ
    assert error_of(sec, header, aes_pointers(sec, loop, out)) == c.GRL
    assert error_of(sec, header, aes_pointers(sec, nowhere, out)) == c.MDTE
    assert error_of(sec, header, aes_pointers(sec, good, nowhere)) == c.MDTE
    assert error_of(sec, header, aes_pointers(sec, Pointer(0x7_0000_0000, 64), out)) == c.MDTE


def test_a_segment_must_not_hold_parts_of_two_parcels(sec: Sec) -> None:
    """Data and ICV behind one pointer: the data must end where a segment ends."""
    packet = Packet("3des", "sha1", 12)
    source, _ = sec.gather(pieces(packet.secret + packet.icv, 500), extent=12)
    out, _ = inbound_room(sec, packet)
    header = packet.header(c.ESP, encrypt=False, check=True)
    assert error_of(sec, header, esp(sec, packet, source, out)) == c.GB
    out = Pointer(sec.table([sec.room(524)]), 512, c.JUMP | 12)
    header = packet.header(c.ESP, encrypt=True)
    assert error_of(sec, header, esp(sec, packet, sec.at(packet.text), out)) == c.SB


def test_packets_of_any_length_in_any_pieces(sec: Sec) -> None:
    """Empty packets and ICVs of no bytes work too: the entry that stands for them is never looked at."""
    chance = random.Random(5)
    for _ in range(40):
        suite = chance.choice([("3des", "sha1"), ("aes", "sha256"), ("aes", "md5")])
        packet = Packet(*suite, chance.choice([0, 4, 12, 16]), 16 * chance.choice([0, 1, 2, 95, 500]))
        length, icv = len(packet.text), packet.icv_length
        cuts = sorted(chance.sample(range(1, length), chance.randint(0, 5))) if length else []
        source, _ = sec.gather(pieces(packet.text, *cuts)) if length else (Pointer(), [])
        out = sec.room(length, extent=icv)
        sec.run(packet.header(c.ESP, encrypt=True), esp(sec, packet, source, out))
        assert sec.got(out) == packet.secret + packet.icv

        parts = pieces(packet.secret, *cuts) if length else []
        source = sec.gather([*parts, *([packet.icv] if icv else [])], icv)[0] if length + icv else Pointer()
        back, segments = inbound_room(sec, packet)
        low = sec.run(packet.header(c.ESP, encrypt=False, check=True), esp(sec, packet, source, back))
        assert low == c.ICV_PASS
        assert sec.gathered(segments) == packet.text + packet.icv


def test_an_empty_packet_may_have_the_icvs_length_on_one_side(sec: Sec) -> None:
    """Talitos says so where it finds one segment left of scattered memory; what counts is the shorter length."""
    packet = Packet("3des", "sha1", 16, 0)
    out = sec.room(0, extent=16)
    sec.run(packet.header(c.ESP, encrypt=True), esp(sec, packet, Pointer(), Pointer(out.address, 16, 16)))
    assert sec.got(out) == packet.icv
    back, segments = inbound_room(sec, packet)
    source = sec.at(packet.icv)
    pointers = esp(sec, packet, Pointer(source.address, 16, 16), back)
    assert sec.run(packet.header(c.ESP, encrypt=False, check=True), pointers) == c.ICV_PASS
    assert sec.gathered(segments) == packet.icv


def test_the_longest_data(sec: Sec) -> None:
    """Lengths have 16 bits."""
    packet = Packet("aes", "sha1", 12, 65520)
    out = sec.room(65520, extent=12)
    sec.run(packet.header(c.ESP, encrypt=True), esp(sec, packet, sec.at(packet.text), out))
    assert sec.got(out) == packet.secret + packet.icv
