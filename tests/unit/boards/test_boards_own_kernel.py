# SPDX-License-Identifier: Apache-2.0
"""The user's own kernel on an emulated board: what is asked of it, and each fault as one message."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from espbench.errors import UsageError
from espbench.paths import data_dir
from espbench.plan import conditions, load_profile, resolve
from espbench.plan.duts.profiles import PerGateway
from espbench.plan.reading.reader import read_text
from espbench.platforms.e500.own_kernel import identified
from espbench.platforms.virtual.parts import own_files, recipe
from espbench.runs.platform_kinds.boards import Boards
from support.plans import plan_text

HEAD = b"\x7fELF\x01\x02" + bytes(12) + b"\x00\x14"
BANNER = b"Linux version 6.6.1-mine (me@here) #1\0"
NAMES = b"espbench_idle\0espbench_crypto\0fsl-gianfar\0"


def kernel(folder: Path, data: bytes) -> Path:
    (folder / "vmlinux").write_bytes(data)
    return folder / "vmlinux"


def test_a_kernel_is_identified_by_version_and_digest(tmp_path: Path) -> None:
    said = identified(kernel(tmp_path, HEAD + BANNER + NAMES))
    assert re.fullmatch(r"6\.6\.1-mine, vmlinux sha256 [0-9a-f]{16}", said)
    assert identified(kernel(tmp_path, HEAD + BANNER + NAMES + b"more")) != said


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"MZ", "expected: a vmlinux for a 32-bit PowerPC"),
        (b"\x7fELF\x02\x01" + bytes(12) + b"\x3e\x00" + BANNER, "expected: a vmlinux for a 32-bit PowerPC"),
        (HEAD + NAMES, "got: none in it"),
        (
            HEAD + BANNER + b"espbench_crypto\0fsl-gianfar\0",
            r"kernel/idle\.c\)\n  got: 6\.6\.1-mine without it",
        ),
        (
            HEAD + BANNER + b"espbench_idle\0fsl-gianfar\0",
            r"kernel/crypto\.c\)\n  got: 6\.6\.1-mine without it",
        ),
        (HEAD + BANNER + b"espbench_idle\0espbench_crypto\0", "CONFIG_GIANFAR"),
    ],
)
def test_what_no_board_can_boot_is_refused(data: bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words) as error:
        identified(kernel(tmp_path, data))
    assert "build it as docs/powerquicc.md shows, or remove kernel:" in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected: a file that can be read"):
        identified(tmp_path / "vmlinux")


def test_a_profile_names_it_and_the_conditions_say_so(tmp_path: Path) -> None:
    """Its path starts at the profile; without it the conditions are those of earlier runs."""
    text = (data_dir("dut-profiles") / "mpc8548e.yaml").read_text()
    own = tmp_path / "mine.yaml"
    own.write_text(
        text.replace("name: mpc8548e", "name: mine\nkernel: {home: a/vmlinux, office: vmlinux}", 1)
    )
    profile = load_profile(str(own))
    assert profile.own_kernel is not None
    assert (profile.own_kernel.home, profile.own_kernel.office) == (
        str(tmp_path / "a/vmlinux"), str(tmp_path / "vmlinux"),
    )  # fmt: skip
    plan = resolve(read_text(plan_text(dut="mpc8548e", suites="[aes128-sha1]"), "plan.yaml", "plan"))
    profiles = conditions(plan, [profile, load_profile("mpc8548e")])["profiles"]
    assert profiles["mine"]["kernel"]["home"] == str(tmp_path / "a/vmlinux")
    assert profiles["mpc8548e"]["kernel"] == "espbench's own"


def test_workers_on_other_machines_get_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both boards name it, so it is sent once; the copy is identified as the original is."""
    data = HEAD + BANNER + NAMES
    mine = kernel(tmp_path, data)
    document = read_text(plan_text(dut="mpc8548e"), "plan.yaml", "plan")
    profile = load_profile("mpc8548e").model_copy(
        update={"kernel": PerGateway(home=str(mine), office=str(mine))}
    )
    (sent,) = Boards(resolve(document), profile).own_files()
    assert Boards(resolve(document), load_profile("mpc8548e")).own_files() == []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert own_files.take(sent) == ""
    assert sent.path == str(mine)
    assert identified(recipe.store() / sent.place) == identified(mine)
