# SPDX-License-Identifier: Apache-2.0
"""A session checks before it measures that daemons and kernels are the same throughout one run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from espbench.errors import UsageError
from espbench.platforms.base import BUILD
from espbench.platforms.uml.uml_kernel import UmlKernel, build_of
from espbench.runs import session
from espbench.runs.session import Session
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


def test_a_kernel_built_anew_makes_another_run() -> None:
    """Its release may be the same; a run without recorded builds goes on."""
    build = {"home": "sha256 1", "office": "sha256 1"}
    name = "strongswan-aes128gcm16-ipv4"
    same_as_before({name: BEFORE | {BUILD: build}}, name, BEFORE | {BUILD: build})
    check(BEFORE | {BUILD: build})
    with pytest.raises(
        UsageError, match=r"kernel build was sha256 1 .* now it is sha256 1 and sha256 2; start a new run"
    ):
        same_as_before(
            {name: BEFORE | {BUILD: build}}, name, BEFORE | {BUILD: build | {"office": "sha256 2"}}
        )


def test_the_build_of_a_kernel_is_its_bytes_and_those_of_its_own_modules(tmp_path: Path) -> None:
    (executable := tmp_path / "linux").write_bytes(b"kernel")
    executable.chmod(0o755)
    modules = tmp_path / "modules"
    (modules / "net").mkdir(parents=True)
    (module := modules / "net" / "esp4.ko").write_bytes(b"module")
    plain, own = UmlKernel(str(executable)), UmlKernel(str(executable), modules)
    before = build_of(plain), build_of(own)
    module.write_bytes(b"another module")
    assert build_of(plain) == before[0]
    assert build_of(own) != before[1]
    executable.write_bytes(b"another kernel")
    assert build_of(plain) != before[0]


def test_the_time_left_is_that_of_cases_that_were_measured_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A case that was on disk takes no time, which says nothing of the next one."""
    made = object.__new__(Session)
    cases = [cast(Any, SimpleNamespace(id=str(number), dut="uml")) for number in range(20)]
    on_disk = {"0", "1"}
    clock = [0.0]

    def measure(running: Any, pair: None, on_left: Any) -> None:
        clock[0] += 0.0 if running.trials else 900.0

    nothing: Any = SimpleNamespace(case_started=lambda *_: None, case_done=lambda *_: None)
    book = SimpleNamespace(
        known=lambda case: None, number=lambda case: int(case.id) + 1, finish=lambda *_: None
    )
    made.__dict__ |= {
        "_cases": cases, "_case_seconds": [], "_book": book, "_observer": nothing,
        "_directory": SimpleNamespace(trials_of=lambda case: [1] if case in on_disk else []),
        "_one_case": SimpleNamespace(measure=measure, pace=1.0),
    }  # fmt: skip
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    monkeypatch.setattr(
        session, "procedure_for",
        lambda case, known, trials: SimpleNamespace(trials=trials, results=lambda facts: []),
    )  # fmt: skip
    monkeypatch.setattr(Session, "_encryption", lambda *_: "proven")
    monkeypatch.setattr(Session, "_warnings", lambda *_: [])
    for case in cases[:4]:
        made._run_case(case, None)
    assert made._time_left(300.0, cases[3]) == 300 + 16 * 900
