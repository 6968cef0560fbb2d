# SPDX-License-Identifier: Apache-2.0
"""A session checks before it measures that daemons and kernels are the same throughout one run."""

from __future__ import annotations

from typing import Any

import pytest

from espbench.errors import UsageError
from espbench.runs.setups import same_as_before

BEFORE = {
    "kernel": {"home": "Linux 6.1.1", "office": "Linux 6.1.1"},
    "stack_version": {
        "home": "strongSwan 5.9.8 (5.9.8-5+deb12u5)",
        "office": "strongSwan 5.9.8 (5.9.8-5+deb12u5)",
    },
}


def check(now: dict[str, Any], name: str = "strongswan-aes128gcm16-ipv4") -> None:
    """Check as when a pair of gateways of that name comes up in a run whose manifest has BEFORE."""
    same_as_before({"strongswan-aes128gcm16-ipv4": BEFORE}, name, now)


def test_repeats_of_one_configuration_go_on() -> None:
    check(BEFORE)
    check({"kernel": {"home": "another"}, "stack_version": {}}, name="not measured before")


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("stack_version", r"stack version was strongSwan 5\.9\.8 \(5\.9\.8-5\+deb12u5\) .* now it is newer;"),
        ("kernel", r"kernel was Linux 6\.1\.1 .* now it is Linux 6\.1\.1 and newer; start a new run"),
    ],
)
def test_a_newer_daemon_or_kernel_makes_another_run(what: str, words: str) -> None:
    """Either gateway counts, resumed or not: figures of two configurations have no name in common."""
    both = "newer" if what == "stack_version" else BEFORE[what]["home"]
    with pytest.raises(UsageError, match=words):
        check(BEFORE | {what: {"home": both, "office": "newer"}})
