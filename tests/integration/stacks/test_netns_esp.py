# SPDX-License-Identifier: Apache-2.0
"""The namespace platform with real ESP: the whole of espbench run inside one UML guest.

The guest's kernel has ESP where the host's may not. It is slow (a system call costs some 40 µs), so
these tests are about function, never about figures.
"""

from __future__ import annotations

import csv
import io
import json
import secrets
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from espbench.platforms.gateway import AgentGateway
from espbench.platforms.uml.uml_guest import BOOT_TIMEOUT_S, UmlMachine, boot
from espbench.platforms.uml.uml_kernel import UmlKernel
from espbench.terms import WITH_FIGURE
from espbench.this_machine.registry import Registry
from support.plans import PINNED, pair_plan
from support.session.unsettled import require_settled

pytestmark = [pytest.mark.uml, pytest.mark.untimed]

MODULES = ("ipv6", "veth", "xfrm_user", "esp4", "esp6")


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentGateway]:
    """A guest in which espbench can be run; its /tmp is its own."""
    logs = tmp_path_factory.mktemp("guest")
    with Registry("t" + secrets.token_hex(3)) as registry:
        started = boot(registry, "lab", UmlMachine(UmlKernel(), 512, preload=MODULES), logs)
        started.channel.wait_ready(BOOT_TIMEOUT_S)
        inside = AgentGateway(started.channel, "home", "", "", lambda: 0, started.notebook, started.console)
        # The host's /run, with the journals and namespaces of other runs, is not the guest's.
        assert inside.run(["mount", "-t", "tmpfs", "tmpfs", "/run"]).rc == 0
        assert inside.run(["ip", "link", "set", "lo", "up"]).rc == 0
        yield inside


def run_inside(
    guest: AgentGateway, plan: dict[str, Any], timeout_s: float = 1800
) -> tuple[list[dict[str, str]], list[dict[str, Any]], dict[str, Any]]:
    """Run a plan inside; rows of results.csv, trials, manifest."""
    name = f"/tmp/{secrets.token_hex(4)}"
    guest.write(f"{name}.yaml", yaml.safe_dump(plan))
    command = [
        sys.executable,
        "-m",
        "espbench",
        "run",
        "--no-report",
        f"{name}.yaml",
        "--out",
        f"{name}.runs",
    ]
    done = guest.run(command, timeout_s=timeout_s)
    assert done.rc in (0, 3), done.err
    (run,) = guest.run(["ls", f"{name}.runs"]).out.split()
    paths = [f"{name}.runs/{run}/{file}" for file in ("results.csv", "trials.jsonl", "manifest.json")]
    table, trials, manifest = (guest.read(paths)[path] or "" for path in paths)
    rows = list(csv.DictReader(io.StringIO(table)))
    require_settled(rows)
    return rows, [json.loads(line) for line in trials.splitlines()], json.loads(manifest)


def plan(**changes: Any) -> dict[str, Any]:
    throughput = {
        "loss_goals": [0], "trial": "300ms", "final_trial": "600ms", "resolution": "50%", "settle": 0,
        "residue": "300ms", "learning": "50ms", "warm_up": 0, "minimum": "100fps", "maximum": "400fps",
    }  # fmt: skip
    few: dict[str, Any] = {"name": "inside", "stacks": ["plain", "xfrm"], "frame_sizes": [512]}
    return pair_plan("auto", **few | PINNED | {"tests": [{"throughput": throughput}]} | changes)


def assert_encrypted(
    suite: str, rows: list[dict[str, str]], trials: list[dict[str, Any]], manifest: dict[str, Any]
) -> None:
    """Assert that the SA counters prove every frame. `auto` is netns inside the guest."""
    assert manifest["platform"] == "netns"
    assert {row["suite"] for row in rows} == {"none", suite}
    assert not [row for row in rows if row["status"] not in WITH_FIGURE]
    assert {row["encryption"] for row in rows if row["suite"] != "none"} == {"proven"}
    for trial in trials:
        if trial["validity"] == "VALID" and "-xfrm-" in trial["case"] and trial["lost"] == 0:
            assert trial["gateways"]["home"]["encrypted_frames"] == trial["tx_frames"]
            assert trial["gateways"]["office"]["decrypted_frames"] == trial["rx_frames"]
    for name, context in manifest["contexts"].items():
        if name.startswith("xfrm"):
            assert context["shown before the first trial"]["cleartext blocked, tunnel down"].startswith(
                "0 of"
            )


def test_namespaces_encrypt_every_frame(guest: AgentGateway) -> None:
    """One algorithm for both purposes. Every suite, in gateways that live elsewhere, is in test_xfrm_options.py and
    test_truth.py.
    """
    suite = "aes128gcm16"
    assert_encrypted(suite, *run_inside(guest, plan(suites=[suite])))


@pytest.mark.slow
def test_ipv6_both_ways_and_transport_mode_work_in_namespaces(guest: AgentGateway) -> None:
    """The same proof over IPv6, in both directions at once, and for ESP in transport mode."""
    stacks = ["xfrm", {"stack": "xfrm", "label": "xfrm-transport", "mode": "transport"}]
    rows, _, manifest = run_inside(
        guest,
        plan(
            stacks=stacks,
            suites=["aes128gcm16"],
            ip_versions=[6],
            directions=["both-ways"],
            frame_sizes=[256],
        ),
    )
    assert not [row for row in rows if row["status"] not in WITH_FIGURE]
    assert {row["ip_version"] for row in rows} == {"6"}
    transport = manifest["contexts"]["xfrm-transport-aes128gcm16-ipv6"]
    assert {sa["mode"] for sa in transport["home"]["security_associations"]} == {"transport"}


@pytest.mark.slow
def test_a_kernel_thread_carries_the_encryption(guest: AgentGateway) -> None:
    """Two algorithms encrypt every frame. Home's CPU is that of its own NAPI threads, and 3DES is not free.

    Only that it moves is asserted: a UML guest books CPU time in whole ticks of 10 ms.
    """
    busy = plan(suites=["3des-sha1"], frame_sizes=[1424])
    busy["tests"][0]["throughput"] |= {"maximum": "2000fps", "minimum": "100fps", "final_trial": "1s"}
    rows, trials, manifest = run_inside(guest, busy)
    assert_encrypted("3des-sha1", rows, trials, manifest)
    assert (
        sum(t["gateways"]["home"]["cpu_pct"] for t in trials if "-xfrm-" in t["case"] and t["gateways"]) > 0
    )


def test_nothing_is_left_inside(guest: AgentGateway) -> None:
    """No namespace, no journal and no generator is left after all these runs."""
    assert guest.run(["ip", "netns", "list"]).out == ""
    assert guest.run(["ls", "/run/espbench"]).out == ""
    assert "espbench-traffic" not in guest.run(["ps", "-eo", "args"]).out
