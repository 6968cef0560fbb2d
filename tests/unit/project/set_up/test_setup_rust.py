# SPDX-License-Identifier: Apache-2.0
"""scripts/setup.sh names the Debian package whose Rust is new enough for the generator."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[4]
NEEDED = re.search(r'^rust-version = "(.+)"$', (PROJECT / "traffic/Cargo.toml").read_text(), re.MULTILINE)


def set_up(
    folder: Path, candidates: dict[str, str], rustc: str = "", os_release: str = "ID=debian\n"
) -> subprocess.CompletedProcess[str]:
    """Run it as a user where these packages are to be had, without Rust or with this one; it installs nothing.

    os_release: the content of that file.
    """
    (folder / "scripts").mkdir()
    (folder / "traffic").mkdir()
    (folder / "os-release").write_text(os_release)
    text = (PROJECT / "scripts/setup.sh").read_text()
    (folder / "scripts/setup.sh").write_text(text.replace("/etc/os-release", str(folder / "os-release")))
    shutil.copy(PROJECT / "traffic/Cargo.toml", folder / "traffic")
    (folder / "scripts/packages.txt").write_text("")
    programs = folder / "bin"
    programs.mkdir()
    for name in ("bash", "dirname", "sed", "sort", "head", "cut"):
        (programs / name).symlink_to(shutil.which(name) or name)
    cases = "".join(f"{name}) echo '  Candidate: {version}';;\n" for name, version in candidates.items())
    fakes = {"id": "echo 1000", "apt-cache": f"case $2 in\n{cases}esac", "apt-get": "exit 9"}
    if rustc:
        fakes |= {"cargo": "exit 9", "rustc": f"echo 'rustc {rustc} (of a test)'"}
    for name, does in fakes.items():
        (programs / name).write_text(f"#!/bin/sh\n{does}\n")
        (programs / name).chmod(0o755)
    return subprocess.run(
        [str(programs / "bash"), str(folder / "scripts/setup.sh")],
        env=os.environ | {"PATH": str(programs)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("candidates", "package"),
    [
        ({"cargo": "0.66.0+ds1-1", "cargo-web": "1.96.0+dfsg1-1~deb12u2"}, "cargo-web"),  # Debian 12
        (
            {"cargo": "0.66.0+ds1-1", "cargo-web": "1.85.0+dfsg3-1~deb12u3"},
            "cargo-web",
        ),  # without its updates
        ({"cargo": "1.85.1+dfsg1-1+deb13u1", "cargo-web": "1.96.0+dfsg1-1"}, "cargo"),  # Debian 13
    ],
)
def test_the_first_package_that_is_new_enough_is_named(
    tmp_path: Path, candidates: dict[str, str], package: str
) -> None:
    """Their versions decide: Debian 12's cargo is Rust 1.63."""
    done = set_up(tmp_path, candidates)
    assert done.returncode == 4
    assert done.stderr == (
        f"setup: missing Debian packages; as root: apt-get install --no-install-recommends -y {package}\n"
    )


def test_a_system_that_was_made_from_debian_is_named(tmp_path: Path) -> None:
    """It has apt-get, and mostly the same packages, but not Debian's releases."""
    ubuntu = 'PRETTY_NAME="Ubuntu 24.04.3 LTS"\nID=ubuntu\nID_LIKE=debian\n'
    done = set_up(tmp_path, {"cargo": "1.96.0"}, os_release=ubuntu)
    assert done.returncode == 4
    remark, command = done.stderr.splitlines()
    assert remark.startswith("setup: Ubuntu 24.04.3 LTS is not Debian: ")
    assert "sources of Debian 12" in remark
    assert command.endswith("-y cargo")


def test_where_no_package_will_do_it_says_what_is_needed(tmp_path: Path) -> None:
    """There is one message and exit code 4 where none is new enough, and where there is none at all."""
    assert NEEDED
    done = set_up(tmp_path, {"cargo": "0.66.0+ds1-1", "cargo-web": "(none)"})
    assert done.returncode == 4
    assert f"Rust {NEEDED[1]} or newer is needed" in done.stderr


def test_a_rust_that_is_too_old_is_named_with_what_mends_it(tmp_path: Path) -> None:
    """It is not replaced: the user may need it."""
    done = set_up(tmp_path, {"cargo": "0.66.0+ds1-1", "cargo-web": "1.96.0"}, rustc="1.63.0")
    assert done.returncode == 4
    assert "has 1.63.0" in done.stderr
    assert done.stderr.endswith("apt-get install -y cargo-web\n")
