# SPDX-License-Identifier: Apache-2.0
"""The driver-level accelerator test in a real UML guest: its crypto API computes each suite in each variant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from espbench.errors import EspbenchError
from espbench.platforms.base import Gateway
from espbench.platforms.uml import crypto_api
from espbench.platforms.uml.crypto_api import SUITES, Asked
from espbench.platforms.uml.uml_kernel import UmlProfile
from espbench.platforms.uml.uml_platform import UmlPlatform
from espbench.procedures.boards.crypto_api import UmlGuest
from espbench.results import accelerator
from espbench.results.accelerator import Variant
from espbench.this_machine.registry import Registry
from support.gateways.addresses import GATEWAY_TO_GATEWAY
from support.gateways.uml_pairs import PLACEMENT
from support.plans import pair_plan, write_plan
from support.runs import espbench

pytestmark = [pytest.mark.uml, pytest.mark.untimed, pytest.mark.slow]

USUAL = Asked("3des-sha1", 64, 300, "encrypt", "unique", 1, "last")


def test_the_guest_computes_what_is_asked(tmp_path: Path) -> None:
    """Each suite and variant gives what other code computes; a wrong output is found; figures name the driver."""
    with Registry("cryptoapi") as registry:
        bed = UmlPlatform(UmlProfile(), GATEWAY_TO_GATEWAY).build(registry, tmp_path, PLACEMENT, single=True)
        gateway = bed.gateways["home"]
        crypto_api.load(gateway)
        program = crypto_api.build(tmp_path)
        for suite in SUITES:
            for changed in (
                {}, {"size": 1456}, {"operation": "decrypt"}, {"data": "cached"}, {"keys": 3}, {"keys": 100},
                {"check": "after"}, {"check": "during"}, {"operation": "decrypt", "keys": 7, "check": "during"},
            ):  # fmt: skip
                figures = crypto_api.measure(gateway, program, replace(USUAL, suite=suite, **changed))
                assert figures["after_ns"] > 0
                assert figures["at_once_ns"] > 0
        the_last_output_is_compared(gateway, program)
        guest = UmlGuest(bed)
        said = guest.ask("aes128-sha1", 64, 1000, Variant())
        guest.close()
        assert str(said["driver"]).startswith("authenc(hmac(sha1-generic),cbc(")
        assert {"after_ns", "at_once_ns", "full", "disturbed_pct"} < set(said)
        bed.close()


@pytest.mark.alone  # a run in real time holds the machine
def test_a_run_of_this_test_alone_sends_no_frames(tmp_path: Path) -> None:
    """It has no cases, so nothing is calibrated; it once ended with a fault there."""
    asked = {"operations": 1000, "sizes": [64], "suites": ["aes128-sha1"], "crypto": ["software"]}
    file = write_plan(
        tmp_path, pair_plan("uml", name="driver", frame_sizes=[64], tests=[{"accelerator": asked}])
    )
    done = espbench("run", file, "--wait", "--out", tmp_path / "runs", timeout=900)
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    (figure,) = accelerator.read(run)
    assert (figure.dut, figure.crypto, figure.operations) == ("uml", "software", 1000)


def the_last_output_is_compared(gateway: Gateway, program: Path) -> None:
    """One bit of what the guest says changes: it is refused."""
    done = gateway.run([str(program), *USUAL.words])
    said = dict(word.split("=", 1) for word in done.out.split())
    crypto_api.prove(USUAL, said)
    for name in ("input", "output"):
        last = int(said[name][-1], 16) ^ 1
        with pytest.raises(EspbenchError, match="gives another result"):
            crypto_api.prove(USUAL, said | {name: f"{said[name][:-1]}{last:x}"})
