# SPDX-License-Identifier: Apache-2.0
"""Checks how the IPsec of an e500 guest uses its SEC: the option of its kernel, and the state that the guest reports.

docs/powerquicc.md explains the behaviours, and harness/emulator/kernel/crypto.c implements them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from espbench.catalogue.suites import Suite

Behaviour = Literal["async", "polling", "dual-pass", "software"]
DEFAULT: Behaviour = "async"
# The files of the guest that read_back() needs.
FILES = ("/proc/espbench_crypto", "/proc/crypto")
# The driver has no separate HMAC for these versions of the SEC (Linux 6.1, talitos: TALITOS_FTR_HMAC_OK).
WITHOUT_DUAL_PASS = frozenset({"2.0"})

_COUNTERS = ("single_pass", "cipher", "digest", "polled", "waited_ns")


@dataclass(frozen=True)
class Crypto:
    """The state that a guest reports.

    Numbers of descriptors given to the SEC since the boot: single_pass (cipher and hash in one), cipher, digest; for
    `polled` of them the CPU waited, waited_ns ns in all. sec: the SEC's version according to the device tree; None: the
    kernel drives no SEC. drivers: algorithm → the driver that a new user of the algorithm gets.
    """

    behaviour: str
    sec: str | None
    single_pass: int
    cipher: int
    digest: int
    polled: int
    waited_ns: int
    drivers: Mapping[str, str]

    @property
    def descriptors(self) -> int:
        """The number of descriptors that were given to the SEC."""
        return self.single_pass + self.cipher + self.digest


def read_back(texts: Mapping[str, str]) -> Crypto:
    """Return the guest's state from the contents of FILES, by path."""
    said = dict(line.split("=", 1) for line in texts[FILES[0]].splitlines())
    return Crypto(
        behaviour=said["behaviour"],
        sec=None if said["sec"] == "none" else said["sec"],
        drivers=drivers(texts[FILES[1]]),
        **{name: int(said[name]) for name in _COUNTERS},
    )


def drivers(proc_crypto: str) -> dict[str, str]:
    """Return the driver of highest priority for each algorithm of /proc/crypto that passed its test or had none."""
    best: dict[str, tuple[int, str]] = {}
    for block in re.split(r"\n\s*\n", proc_crypto.strip()):
        facts = dict(re.findall(r"^(\w+)\s*: (.*)$", block, re.MULTILINE))
        if facts.get("selftest") != "passed":
            continue
        rank = int(facts["priority"]), facts["driver"]
        best[facts["name"]] = max(rank, best.get(facts["name"], rank))
    return {name: driver for name, (_, driver) in best.items()}


def algorithm(suite: Suite) -> str:
    """Return the name of the suite's algorithm in the crypto API, without the IV generator that ESP puts around it."""
    if suite.aead:
        return suite.aead.kernel_name
    assert suite.encryption is not None
    assert suite.integrity is not None
    return f"authenc({suite.integrity.kernel_name},{suite.encryption.kernel_name})"


def driver(crypto: Crypto, suite: Suite) -> str | None:
    """Return the name of the driver that computes the suite's ESP; None as long as no SA has requested it.

    If the name has no "talitos" in it, the CPU computes the suite.
    """
    inner = algorithm(suite)
    for name, by in crypto.drivers.items():
        if name == inner or re.fullmatch(rf"\w+\({re.escape(inner)}\)", name):
            wrapped = re.fullmatch(r"(?:echainiv|seqiv)\((.*)\)", by)
            return wrapped[1] if wrapped else by
    return None


def mistakes(asked: Behaviour, crypto: Crypto, suite: Suite) -> list[str]:
    """Return what is not as asked for, in sentences; crypto must be read after the suite's SAs were set up."""
    problems = []
    if crypto.behaviour != asked:
        problems.append(f"crypto: expected {asked}, the guest's kernel says {crypto.behaviour}")
    by = driver(crypto, suite)
    if by is None:
        return [
            *problems,
            f"crypto: expected a driver for {algorithm(suite)}, the guest's /proc/crypto has none",
        ]
    if (wanted := _wanted(asked, suite)) and not wanted[1].fullmatch(by):
        problems.append(f"crypto: {asked}: expected {wanted[0]} for {suite.name}, got {by}")
    return problems


def _wanted(asked: Behaviour, suite: Suite) -> tuple[str, re.Pattern[str]] | None:
    """Return which drivers belong to a behaviour, in words and as a pattern; None: any driver that Linux has."""
    if asked == "software":
        return "the kernel's own code", re.compile(r"(?!.*talitos).*")
    if suite.aead or suite.iv_bytes == 0:
        return None  # the SEC has no GCM for ESP, and nothing to do for a null cipher
    if asked == "dual-pass":
        return "the SEC's cipher and its hash", re.compile(r"authenc\([\w-]+-talitos,[\w-]+-talitos\)")
    return "the SEC's single pass", re.compile(r"authenc-[\w-]+-talitos(-hsna)?")
