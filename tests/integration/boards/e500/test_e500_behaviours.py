# SPDX-License-Identifier: Apache-2.0
"""Each behaviour of a guest's IPsec towards its SEC computes what it should, in the way that it says.

The kernel's own tests, its fuzzing included, say that driver and engine do so in each of them.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import get_args

import pytest

from espbench.catalogue import board_crypto
from espbench.catalogue.board_crypto import Behaviour, Crypto
from espbench.platforms.e500.e500_guest import kernel_option
from espbench.platforms.virtual.virtual_guest import Built
from espbench.this_machine.registry import Registry
from support.session.slow import slow_but
from support.virtual.e500_machine import Machine, built_by_command, sec, starter

BEHAVIOURS: tuple[Behaviour, ...] = get_args(Behaviour)

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards]

Start = Callable[..., Machine]

SUITES = {
    "3des-sha1": "sha1 3des",
    "3des-md5": "md5 3des",
    "aes128-sha1": "sha1 aes",
    "aes256-sha1": "sha1 aes",
    "aes256-sha256": "sha256 aes",
}
NO_TESTS = "cryptomgr.notests=1"
TESTS = "loglevel=5"  # warnings too: what the kernel says of its tests
OPERATIONS = 200
# Each way's last result is proved by one decryption, one encryption, and a decryption that must fail.
WAYS = 2
PROOFS = 3


@pytest.fixture(scope="module")
def built() -> Built:
    """Return the kit as a run would find it."""
    return built_by_command()


@pytest.fixture
def start(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Starts machines that end with the test."""
    folder = tmp_path_factory.mktemp("e500")
    with Registry(secrets.token_hex(3), folder / "state") as registry:
        yield starter(built, registry, folder)


def says(machine: Machine) -> Crypto:
    return board_crypto.read_back(machine.read(*board_crypto.FILES))


def behaving(start: Start, behaviour: Behaviour, version: str = "2.1") -> Machine:
    return start(*sec(version), append=f"{NO_TESTS} {kernel_option(behaviour)}")


@dataclass(frozen=True)
class Counts:
    """Counts what was done since the boot, as the guest, the engine and the interrupt controller say it."""

    kinds: tuple[int, ...]
    polled: int
    waited_ns: int
    served: int
    busy_ns: int
    interrupts: int

    @staticmethod
    def of(machine: Machine) -> Counts:
        said = says(machine)
        lines = machine.read("/proc/interrupts")["/proc/interrupts"].splitlines()
        return Counts(
            (said.single_pass, said.cipher, said.digest),
            said.polled,
            said.waited_ns,
            machine.sec_counter("descriptors"),
            machine.sec_counter("busy-ns"),
            sum(int(line.split()[1]) for line in lines if line.endswith("talitos")),
        )

    def since(self, other: Counts) -> Counts:
        return Counts(
            tuple(mine - its for mine, its in zip(self.kinds, other.kinds, strict=True)),
            self.polled - other.polled,
            self.waited_ns - other.waited_ns,
            self.served - other.served,
            self.busy_ns - other.busy_ns,
            self.interrupts - other.interrupts,
        )


def expected_driver(behaviour: Behaviour, suite: str) -> str:
    digest, cipher = SUITES[suite].split()
    if behaviour == "software":
        generic = "des3_ede" if cipher == "3des" else cipher
        return f"authenc(hmac({digest}-generic),cbc({generic}-generic))"
    if behaviour == "dual-pass":
        return f"authenc(hmac-{digest}-talitos,cbc-{cipher}-talitos)"
    return f"authenc-hmac-{digest}-cbc-{cipher}-talitos"


def expected_descriptors(behaviour: Behaviour) -> tuple[int, int, int]:
    """Single-pass, cipher, digest of one accelerator test: a hash that is wrong spares the deciphering."""
    operations = WAYS * (OPERATIONS + PROOFS)
    if behaviour == "software":
        return 0, 0, 0
    return (0, operations - WAYS, operations) if behaviour == "dual-pass" else (operations, 0, 0)


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_each_behaviour_computes_the_suites_in_its_own_way(start: Start, behaviour: Behaviour) -> None:
    """Results are those of software; so many descriptors, counted by driver and engine; the CPU waits or idles."""
    machine = behaving(start, behaviour)
    said = says(machine)
    assert (said.behaviour, said.sec) == (behaviour, None if behaviour == "software" else "fsl,sec2.1")
    for suite in SUITES:
        for size in (64, 1456):
            before = Counts.of(machine)
            figures = machine.ask(f"accel {suite} {size} {OPERATIONS}")
            done = Counts.of(machine).since(before)
            assert figures["ok"], figures
            assert figures["driver"] == expected_driver(behaviour, suite)
            assert done.kinds == expected_descriptors(behaviour)
            assert done.served == sum(done.kinds)
            if behaviour == "async":
                # One by one, each is an interrupt and idles the CPU; at once several share one.
                assert OPERATIONS < done.interrupts <= done.served
                assert figures["at_once_ns"] < figures["after_ns"]
                assert (done.polled, done.waited_ns) == (0, 0)
                assert size == 64 or figures["after_idle_ns"] > 0.3 * figures["after_ns"]
            else:
                assert done.interrupts == 0
                assert figures["after_idle_ns"] == figures["at_once_idle_ns"] == 0
                assert done.polled == done.served
                # It waits for as long as the engine works, to some dozen instructions for each.
                assert abs(done.waited_ns - done.busy_ns) <= 100 * done.served


@pytest.mark.parametrize("version", slow_but(["2.0", "3.0"], ["2.0", "2.2", "2.4", "3.0"]))
def test_every_engine_serves_the_suites(start: Start, version: str) -> None:
    """Engines do so with and without a check of ICVs of their own, and with one channel or four."""
    without = {"software", *(["dual-pass"] if version in board_crypto.WITHOUT_DUAL_PASS else [])}
    for behaviour in (one for one in BEHAVIOURS if one not in without):
        machine = behaving(start, behaviour, version)
        for suite in SUITES:
            figures = machine.ask(f"accel {suite} 576 50")
            assert figures["ok"], (behaviour, figures)
            assert figures["driver"] == expected_driver(behaviour, suite)


def test_what_nobody_asked_for(start: Start) -> None:
    """A guest then does as Linux does by itself: it uses the engine where there is one."""
    assert says(start(*sec())).behaviour == board_crypto.DEFAULT == "async"
    alone = says(start())
    assert (alone.behaviour, alone.sec, alone.descriptors) == ("software", None, 0)


@pytest.mark.parametrize(
    ("option", "version", "why"),
    [
        ("espbench.crypto=asink", "2.1", "expected async, polling, dual-pass or software"),
        ("espbench.crypto", "2.1", "espbench.crypto=: expected async"),
        ("espbench.crypto=polling", None, "expected a SEC, this board has none"),
        ("espbench.crypto=dual-pass", "2.0", "expected a SEC that computes HMACs, fsl,sec2.0 does not"),
    ],
)
def test_what_cannot_be_had_is_a_panic_that_says_so(
    start: Start, option: str, version: str | None, why: str
) -> None:
    """Rather than figures of another behaviour."""
    with pytest.raises(AssertionError, match=f"Kernel panic - not syncing: .*{re.escape(why)}"):
        start(*(sec(version) if version else []), append=f"{NO_TESTS} {option}")


def tested(machine: Machine) -> dict[str, str]:
    """The SEC's algorithms: driver → what their self-tests said."""
    text = machine.read("/proc/crypto")["/proc/crypto"]
    results = re.findall(r"driver +: (\S+-talitos(?:-hsna)?)\n(?:.*\n)*?selftest +: (\w+)\n", text)
    return dict(results)


# A packet that is neither whole blocks nor authentic: Linux's authenc finds the hash wrong (EBADMSG), the SEC first
# looks at the length (EINVAL), as it does in silicon. Either refuses it; the fuzzing, which draws one now and then,
# wants the same error.
BOTH_REFUSE = re.compile(
    r'decryption failed on test vector "random: alen=\d+ plen=(\d+) [^"]*novrfy=1"; '
    r"expected_error=-EBADMSG, actual_error=-22"
)
BLOCK = 8  # of the smallest cipher
# A key whose AES part has a length that AES does not have: aead_setkey of Linux's talitos driver looks at the length of
# the whole key only, and does not ask the SEC; Linux's own AES refuses such a key.
DRIVER_TAKES_KEY = re.compile(
    r'cbc-aes-talitos\S* setkey unexpectedly succeeded on test vector "random: [^"]*"; expected_error=-22$'
)


def drew_what_says_nothing(machine: Machine) -> bool:
    """Say whether nothing else failed: each failure is followed by the driver's own line, said twice."""
    failed = [
        line for line in machine.console.splitlines() if "failed" in line or "unexpectedly succeeded" in line
    ]
    refused = [match for line in failed if (match := BOTH_REFUSE.search(line)) and int(match[1]) % BLOCK]
    drawn = len(refused) + sum(bool(DRIVER_TAKES_KEY.search(line)) for line in failed)
    told = [line for line in failed if re.search(r"self-tests for \S+ using \S+ failed \(rc=-22\)$", line)]
    return drawn > 0 and drawn + len(told) == len(failed) <= 3 * drawn


@pytest.mark.parametrize(
    ("version", "behaviour", "algorithms"),
    [
        ("3.0", "async", 39),
        *(
            pytest.param(*others, marks=pytest.mark.slow)
            for others in (
                ("2.1", "async", 31), ("2.4", "async", 31), ("2.0", "polling", 23), ("2.1", "dual-pass", 15),
            )
        ),
    ],
)  # fmt: skip
def test_the_kernels_own_tests_pass(
    start: Start, version: str, behaviour: Behaviour, algorithms: int
) -> None:
    """Its vectors, and what its fuzzing compares with software."""
    for seed in (1, 2, 3):
        machine = start(*sec(version), append=f"{TESTS} {kernel_option(behaviour)}", seed=seed)
        assert "extra crypto tests enabled" in machine.console
        if not drew_what_says_nothing(machine):
            break
    assert "failed" not in machine.console
    results = tested(machine)
    assert set(results.values()) == {"passed"}
    assert len(results) == algorithms


def has_vectors(driver: str) -> bool:
    """Say whether the kernel has test vectors for an AEAD of the SEC; if not, "passed" says nothing."""
    return not re.search(r"md5|(sha224|sha384)-cbc-aes", driver)


@pytest.mark.parametrize(("version", "aeads"), [pytest.param("2.1", 10, marks=pytest.mark.slow), ("3.0", 13)])
def test_one_wrong_bit_of_each_icv_is_found(start: Start, version: str, aeads: int) -> None:
    """The kernel's own tests, those that pass elsewhere, find it: so they can fail."""
    machine = start(*sec(version, "x-flip-icv=on"), append=TESTS)
    passed = {driver for driver, said in tested(machine).items() if said == "passed"}
    assert not [driver for driver in passed if driver.startswith("authenc") and has_vectors(driver)]
    failed = set(re.findall(r"self-tests for \S+ using (\S+) failed", machine.console))
    assert len(failed) == aeads
    assert all(driver.startswith("authenc") and has_vectors(driver) for driver in failed)


def test_one_wrong_bit_fails_the_accelerator_test_too(start: Start) -> None:
    """Its proof is made with software: EBADMSG, no figures."""
    machine = start(*sec("2.1", "x-flip-icv=on"), append=NO_TESTS)
    assert machine.ask("accel 3des-sha1 64 10")["errno"] == 74
