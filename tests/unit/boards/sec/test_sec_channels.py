# SPDX-License-Identifier: Apache-2.0
"""The SEC model: errors, interrupts and time."""

from __future__ import annotations

import struct

import pytest

from support.sec import console as c
from support.sec.console import Make, Pointer, Sec
from support.sec.descriptors import Packet, cipher_header, data, digest_of, error_of, esp, quick, run_cipher

pytestmark = pytest.mark.needs("gcc", "nettle-dev")


def test_headers_that_no_version_can_run(sec: Sec) -> None:
    for header in (
        c.AES | 3 << 3,  # a type that is not modelled
        c.AES | 6 << 3,  # reserved
        c.DES | c.CTR_TYPE,
        c.AES | 0x00030000 | c.COMMON,  # one unit only
        c.AES | c.ESP,  # two units
        c.AES | c.PKEU_MM,
        c.PK | c.COMMON,
    ):
        assert error_of(sec, header, []) == c.IDH
    for header in (c.COMMON, 0xF0000000 | c.COMMON, 0x10000000 | c.COMMON, c.AES | 0x000F0000 | c.ESP):
        assert error_of(sec, header, []) == c.IEU


def test_a_version_has_only_its_own_units_and_types(make: Make) -> None:
    sha512 = 0xB0000000 | (c.INIT | c.PAD | 2) << 20 | c.COMMON
    assert error_of(make(version="2.1"), sha512, []) == c.IEU
    assert error_of(make(version="2.2"), c.RNG | c.COMMON, []) == c.IEU
    assert error_of(make(version="2.2"), c.PK | 0x80 << 20 | c.PKEU_MM, []) == c.IDH
    for algorithm, mode in ((3, 0), (0, c.CICV)):  # SHA-224 and the check of ICVs came with 2.1
        sec = make(version="2.0")
        header = 0x30000000 | (c.INIT | c.PAD | algorithm | mode) << 20 | c.COMMON
        assert error_of(sec, header, [Pointer()] * 3 + [sec.at(b"abc"), Pointer(), sec.room(20)]) == c.EU


@pytest.mark.parametrize(
    ("header", "key", "text", "register", "bits"),
    [
        (cipher_header("aes", "cbc", True), 16, 17, c.AESU, c.DSE),
        (cipher_header("aes", "ctr", True), 16, 17, c.AESU, c.DSE),
        (cipher_header("aes", "cbc", True), 15, 16, c.AESU, c.KSE),
        (cipher_header("aes", "cbc", True), 40, 16, c.AESU, c.KSE),
        (cipher_header("aes", "cbc", True) | 0x08000000, 16, 16, c.AESU, c.ME),
        (cipher_header("3des", "cbc", True), 24, 15, c.DEU, c.DSE),
        (cipher_header("3des", "cbc", True), 8, 16, c.DEU, c.KSE),
        (cipher_header("des", "cbc", True), 24, 16, c.DEU, c.KSE),
        (cipher_header("des", "cbc", True) | 0x00800000, 8, 16, c.DEU, c.ME),
        (0x30000000 | (c.INIT | c.CONT) << 20 | c.COMMON, 0, 63, c.MDEU, c.DSE),
        (0x30000000 | (c.INIT | c.PAD | c.HMAC) << 20 | c.COMMON, 65, 63, c.MDEU, c.KSE),
        (0x30000000 | (c.INIT | c.PAD | 0x20) << 20 | c.COMMON, 0, 63, c.MDEU, c.ME),
    ],
)
def test_wrong_lengths_and_modes_are_the_units_errors(
    sec: Sec, header: int, key: int, text: int, register: int, bits: int
) -> None:
    hashing = header >> 28 == 3
    out = sec.room(20 if hashing else text)
    pointers = [Pointer(), Pointer(), sec.at(data(1, key)), sec.at(data(2, text)),
                *([Pointer(), out] if hashing else [out])]  # fmt: skip
    address = sec.submit(header, pointers)
    sec.idle()
    assert (sec.error(), sec.read(register + c.EU_ISR + 4)) == (c.EU, bits)
    assert sec.got(out) == b"\xee" * out.length
    assert sec.get(address, 4) == struct.pack(">I", header)
    sec.carry_on()
    assert sec.read(register + c.EU_ISR + 4) == 0


def test_no_more_comes_out_than_went_in(sec: Sec) -> None:
    pointers = [Pointer(), Pointer(), sec.at(bytes(16)), sec.at(bytes(16)), sec.room(32)]
    sec.submit(cipher_header("aes", "ecb", True), pointers)
    sec.idle()
    assert (sec.error(), sec.read(c.AESU + c.EU_ISR + 4)) == (c.EU, c.DSE)


def test_context_of_a_wrong_length_is_a_context_error(sec: Sec) -> None:
    header = 0x30000000 | c.PAD << 20 | c.COMMON
    pointers = [Pointer(), sec.at(bytes(39)), Pointer(), sec.at(b"abc"), Pointer(), sec.room(20)]
    sec.submit(header, pointers)
    sec.idle()
    assert (sec.error(), sec.read(c.MDEU + c.EU_ISR + 4)) == (c.EU, c.CE)


def test_des_key_parity_is_checked_where_software_asks_for_it(sec: Sec) -> None:
    """Masked after a reset: talitos's keys have any parity."""
    even, odd = bytes(8), b"\x01" * 8
    header = cipher_header("des", "ecb", True)
    assert sec.read(c.DEU + c.EU_ICR + 4) & c.KPE
    sec.run(header, [Pointer(), Pointer(), sec.at(even), sec.at(bytes(8)), sec.room(8)])
    sec.write(c.DEU + c.EU_ICR + 4, 0)
    sec.run(header, [Pointer(), Pointer(), sec.at(odd), sec.at(bytes(8)), sec.room(8)])
    sec.submit(header, [Pointer(), Pointer(), sec.at(even), sec.at(bytes(8)), sec.room(8)])
    sec.idle()
    assert (sec.error(), sec.read(c.DEU + c.EU_ISR + 4)) == (c.EU, c.KPE)
    sec.write(c.DEU + c.EU_RESET + 4, 1)
    assert sec.read(c.DEU + c.EU_ISR + 4) == 0
    assert sec.read(c.DEU + c.EU_ICR + 4) & c.KPE


def test_fetch_pointers_of_zero_and_to_nowhere(sec: Sec) -> None:
    for address, error in ((0, c.FPZ), (0x7_0000_0000, c.MDTE)):
        sec.fetch(address)
        sec.idle()
        assert sec.error() == error
        sec.carry_on()


def test_a_channel_stands_after_an_error_until_told_to_go_on(sec: Sec) -> None:
    """Its queue is kept by CON and lost by R; other channels do not wait."""
    good = [Pointer(), Pointer(), sec.at(bytes(16)), sec.at(bytes(16)), sec.room(16)]
    header = cipher_header("aes", "ecb", True)
    for reset, served in ((False, b"\xff"), (True, b"\x60")):
        bad = sec.submit(c.AES | c.ESP)
        behind = sec.submit(header, good)
        other = sec.submit(header, good, n=2)
        sec.idle()
        assert (sec.get(bad, 1), sec.get(behind, 1), sec.get(other, 1)) == (b"\x60", b"\x60", b"\xff")
        assert sec.read(sec.channel(0, c.CPSR)) >> 24 == 1
        late = sec.submit(header, good)
        sec.idle()
        assert sec.get(late, 1) == b"\x60"
        sec.write(c.ICR, 0xFF)
        if reset:
            sec.reset_channel(0)
        else:
            sec.carry_on()
        sec.idle()
        assert sec.get(behind, 1) == sec.get(late, 1) == served
        sec.write(c.ICR, 0xFF)


def test_a_full_fetch_fifo_says_so_and_then_again(sec: Sec) -> None:
    """One is in service, 24 wait; the 26th is dropped (SOF), and the next too (DOF). The others are served."""
    good = [Pointer(), Pointer(), sec.at(bytes(16)), sec.at(bytes(16)), sec.room(16)]
    header = cipher_header("aes", "ecb", True)
    queued = [sec.submit(header, good) for _ in range(25)]
    assert sec.error() == 0
    assert sec.read(sec.channel(0, c.CPSR)) >> 24 == 24
    dropped = sec.submit(header, good)
    assert (sec.error(), sec.read64(c.ISR)) == (c.SOF, 2 << 32)
    also = sec.submit(header, good)
    assert sec.error() == c.SOF | c.DOF
    sec.write(c.ICR, 2)
    sec.idle()
    assert [sec.get(address, 1) for address in queued] == [b"\xff"] * 25
    assert sec.get(dropped, 1) == sec.get(also, 1) == b"\x60"
    sec.carry_on()
    assert sec.error() == 0


def test_the_mask_holds_interrupts_back(sec: Sec) -> None:
    """Talitos masks done interrupts until its tasklet has run."""
    sec.write(c.IMR, 0x100AA)
    quick(sec)
    sec.idle()
    assert sec.read64(c.ISR) == 1 << 32
    assert sec.line() == (False, 0)
    sec.write(c.IMR, 0x100FF)
    assert sec.line() == (True, 1)


def test_done_interrupts_are_queued(make: Make) -> None:
    """Each clear takes one; more than 15 are an overflow. As a latch, one clear takes all."""
    for queue, clears, status in ((15, 15, 0x101 << 32), (1, 1, 0x001 << 32)):
        sec = make(done_queue=queue)
        for _ in range(17):
            quick(sec)
        sec.idle()
        assert sec.read64(c.ISR) == status
        for n in range(clears):
            assert sec.line()[0], n
            sec.write(c.ICR, 0x101)
        assert not sec.line()[0]
        assert sec.read64(c.ISR) == 0


def test_notification_is_for_all_or_for_those_that_ask(sec: Sec) -> None:
    sec.write(sec.channel(0, c.CCR) + 4, 0x10 | 0x04 | 0x02)
    silent, loud = quick(sec), quick(sec, flags=c.NOTIFY)
    sec.idle()
    assert (sec.get(silent, 1), sec.get(loud, 1)) == (b"\x60", b"\xff")
    assert sec.line() == (True, 1)
    sec.write(c.ICR, 1)
    assert not sec.line()[0]
    sec.write(sec.channel(0, c.CCR) + 4, 0)  # neither written back nor interrupted, yet done
    before = sec.counters()[0]
    quiet = quick(sec)
    sec.idle()
    assert (sec.get(quiet, 1), sec.line()[0], sec.counters()[0]) == (b"\x60", False, before + 1)


@pytest.mark.parametrize(("cipher", "digest"), [("3.5", "2.002"), ("1.25", "5")], ids=["cipher", "digest"])
def test_service_time_is_exact(make: Make, cipher: str, digest: str) -> None:
    """Descriptor, bytes on the bus and the slower unit; what is below a nanosecond is kept, not lost."""
    clock = 133_333_333
    prices = c.costs(descriptor="617.125", bus="0.25", sha1=digest, **{"3des": cipher})
    sec, packet = make(clock=clock, costs=prices), Packet("3des", "sha1", 12, 1424)
    bytes_moved = 20 + 16 + 8 + 24 + 1424 + 1424 + 12 + 8
    units = max(round(1000 * float(cipher)) * 1424, round(1000 * float(digest)) * (1424 + 16))
    thousandths = 617125 + 250 * bytes_moved + units
    for n in range(1, 50):
        pointers = esp(sec, packet, sec.at(packet.text), sec.room(1424, extent=12))
        sec.submit(packet.header(c.ESP, encrypt=True), pointers)
        sec.idle()
        assert sec.now == n * thousandths * 1_000_000 // clock
    assert sec.counters() == (49, 0, 49 * 1424, 49 * 1424, sec.now)


@pytest.mark.parametrize(
    ("name", "unit", "mode", "key"),
    [("des", "des", "cbc", 8), ("3des", "3des", "cbc", 24), ("aes128", "aes", "ctr", 16),
     ("aes192", "aes", "cbc", 24), ("aes256", "aes", "ecb", 32)],
)  # fmt: skip
def test_each_cipher_has_its_own_price(make: Make, name: str, unit: str, mode: str, key: int) -> None:
    sec = make(clock=1_000_000_000, costs=c.costs(descriptor="100", **{name: "7"}))
    run_cipher(sec, unit, mode, bytes(range(key)), b"" if mode == "ecb" else bytes(8 if "des" in unit else 16),
               bytes(160), True)  # fmt: skip
    assert sec.now == 100 + 7 * 160


@pytest.mark.parametrize("name", c.DIGESTS)
def test_each_digest_has_its_own_price(make: Make, name: str) -> None:
    sec = make(version="3.0", clock=1_000_000_000, costs=c.costs(descriptor="100", **{name: "7"}))
    digest_of(sec, name, [bytes(160)])
    assert sec.now == 100 + 7 * 160


def test_channels_are_served_in_turn(make: Make) -> None:
    """One server, one descriptor of each channel after the other; a late queue waits for its turn, not longer."""
    sec = make(clock=1_000_000_000, costs=c.costs(descriptor="984"))
    queued = {quick(sec, n): n for n in (1, 1, 1, 0, 3, 3)}
    order = []
    while (wake := sec.wake()) is not None:
        sec.until(wake)
        order += [(n, wake) for address, n in queued.items() if sec.get(address, 1) == b"\xff"]
        queued = {address: n for address, n in queued.items() if sec.get(address, 1) != b"\xff"}
        if wake == 2000:
            queued[quick(sec, 2)] = 2
    assert order == [(1, 1000), (3, 2000), (0, 3000), (1, 4000), (2, 5000), (3, 6000), (1, 7000)]


def served(sec: Sec, queued: dict[int, int]) -> list[tuple[int, int]]:
    """Let all be done; channel and time of each, in turn."""
    order = []
    while (wake := sec.wake()) is not None:
        sec.until(wake)
        done = [address for address in queued if sec.get(address, 1) == b"\xff"]
        order += [(queued.pop(address), wake) for address in done]
    return order


def test_sets_of_units_serve_channels_at_once_and_no_request_sooner(make: Make) -> None:
    """Four requests of four channels take the time of one; four of one channel take four times as long."""
    sec = make(clock=1_000_000_000, costs=c.costs(descriptor="984"), at_once=4)
    assert served(sec, {quick(sec, n): n for n in (0, 1, 2, 3)}) == [(n, 1000) for n in (0, 1, 2, 3)]
    assert served(sec, {quick(sec, n): n for n in (0, 0, 0, 0)}) == [(0, 1000 * n) for n in (2, 3, 4, 5)]


def test_two_sets_of_units_leave_the_third_channel_to_wait(make: Make) -> None:
    sec = make(clock=1_000_000_000, costs=c.costs(descriptor="984"), at_once=2)
    assert served(sec, {quick(sec, n): n for n in (0, 1, 3)}) == [(0, 1000), (1, 1000), (3, 2000)]


def test_a_reset_leaves_other_channels_in_service(make: Make) -> None:
    sec = make(clock=1_000_000_000, costs=c.costs(descriptor="984"), at_once=2)
    queued = {quick(sec, n): n for n in (0, 1, 2)}
    sec.until(400)
    sec.reset_channel(0)
    assert served(sec, queued) == [(1, 1000), (2, 1400)]


@pytest.mark.parametrize(
    ("busy_until", "ns_per_byte", "ends"),
    [(0, 0, 1000), (700, 0, 1700), (0, 5, 1000), (0, 20, 2240), (700, 20, 2940)],
    ids=["free", "taken", "fast", "slow", "taken and slow"],
)
def test_a_request_waits_for_the_bus_and_until_all_has_crossed_it(
    make: Make, busy_until: int, ns_per_byte: int, ends: int
) -> None:
    """The descriptor's 64 bytes, the key, and the data in and out cross the bus while the engine works."""
    sec = make(clock=1_000_000_000, costs=c.costs(descriptor="984"))
    sec.tell(f"B {busy_until} {ns_per_byte}")
    assert served(sec, {quick(sec): 0}) == [(0, ends)]


def test_what_the_engine_moves_makes_others_wait(make: Make) -> None:
    """The second request is served at once, but has the bus only behind the first one's 112 bytes."""
    sec = make(clock=1_000_000_000, costs=c.costs(descriptor="984"), at_once=2)
    sec.tell("B 0 5")
    assert served(sec, {quick(sec, n): n for n in (0, 1)}) == [(0, 1000), (1, 1560)]


def test_a_late_wake_up_delays_nothing(make: Make) -> None:
    """Neither a timer that fires late nor a register that is read before it changes when the next service ends."""
    for late in (True, False):
        sec = make(clock=1_000_000_000, costs=c.costs(descriptor="984"))
        addresses = [quick(sec) for _ in range(3)]
        if late:
            sec.tell("L 2345")
        else:
            sec.tell("L 0")  # a call too early
            assert sec.wake() == 1000
            sec.until(2345)
            assert sec.read(sec.channel(0, c.CPSR)) == 0
        assert [sec.get(address, 1) for address in addresses] == [b"\xff", b"\xff", b"\x60"]
        assert sec.wake() == 3000
        assert sec.counters()[4] == 2000


def test_a_snapshot_goes_on_where_it_was_taken(make: Make) -> None:
    """The same times, memory and interrupts as without one."""
    outcomes = []
    for snapshot in (False, True):
        sec = make(costs=c.costs(descriptor="333.333"))
        addresses = [quick(sec, n) for n in (0, 0, 1, 2)]
        sec.until(2000)
        if snapshot:
            sec.tell("X")
        random_word = sec.read(c.RNGU + c.EU_FIFO)
        sec.idle()
        outcomes.append((sec.now, sec.read64(c.ISR), sec.line()[0], sec.counters(), random_word,
                         [sec.get(address, 4) for address in addresses]))  # fmt: skip
    assert outcomes[0] == outcomes[1]


def test_a_reset_gives_up_what_is_in_service(sec: Sec) -> None:
    first, second, other = quick(sec), quick(sec), quick(sec, 1)
    sec.reset_channel(0)
    sec.idle()
    assert [sec.get(a, 1) for a in (first, second, other)] == [b"\x60", b"\x60", b"\xff"]
    quick(sec)
    sec.write(c.MCR, 1)
    assert sec.wake() is None
    assert (sec.read64(c.IMR), sec.read64(c.ISR), sec.read(sec.channel(1, c.CCR) + 4)) == (0, 0, 0)
    assert not sec.line()[0]
