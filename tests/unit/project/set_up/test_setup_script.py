# SPDX-License-Identifier: Apache-2.0
"""The set-up looks for what is needed, not where one Debian release keeps it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

CLONE = Path(__file__).parents[4]


def test_no_package_is_told_by_the_path_of_one_python() -> None:
    """Debian 13 has 3.13: there python3-venv would be installed again and again, in vain."""
    lines = (CLONE / "scripts/packages.txt").read_text().splitlines()
    assert not [line for line in lines if re.search(r"/python3\.\d", line)]
    (venv,) = (line.split()[1] for line in lines if line.startswith("python3-venv"))
    assert venv == "run:scripts/python.sh"


@pytest.mark.parametrize(
    ("pythons", "chosen"),
    [
        ({"python3": "3.11"}, "python3"),
        ({"python3.13": "3.13", "python3": "3.13"}, "python3.13"),
        ({"python3.13": "no ensurepip", "python3.12": "3.12"}, "python3.12"),
        ({"python3": "3.10"}, ""),
        ({"python3.13": "no ensurepip"}, ""),
        ({}, ""),
    ],
)
def test_any_python_that_can_make_an_environment_will_do(
    tmp_path: Path, pythons: dict[str, str], chosen: str
) -> None:
    """3.11 or newer, with ensurepip, which Debian's python3-venv brings."""
    for name, version in pythons.items():
        good = version != "no ensurepip" and int(version.partition(".")[2]) >= 11
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {0 if good else 1}\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", CLONE / "scripts/python.sh"],
        env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout.strip(), done.returncode == 0) == (chosen, bool(chosen))


FAKE_PYTHON = """#!/bin/sh
case "$*" in
    "-c import sys"*) cat "$CLONE/version" ;;
    "-m venv .venv")
        mkdir -p .venv/bin
        for name in python pip; do printf '#!/bin/sh\\n' > .venv/bin/$name; chmod +x .venv/bin/$name; done ;;
esac
"""


def clone(folder: Path, fakes: dict[str, str]) -> dict[str, str]:
    """Make a clone with these programs before all others; return the environment for its scripts."""
    for name in ("scripts", "traffic", "bin", ".venv/bin"):
        (folder / name).mkdir(parents=True)
    for name in ("setup.sh", "demo.sh", "dist.sh"):
        shutil.copy(CLONE / "scripts" / name, folder / "scripts")
    shutil.copy(CLONE / "traffic/Cargo.toml", folder / "traffic")
    for name in ("requirements.lock", "pyproject.toml", "scripts/packages.txt"):
        (folder / name).write_text("")
    for name, text in fakes.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return os.environ | {"PATH": f"{folder}/bin:{os.environ['PATH']}", "CLONE": str(folder)}


def test_the_environment_is_made_again_when_its_python_is_another_or_gone(tmp_path: Path) -> None:
    """After an upgrade of Debian, .venv/bin/python is a link to nothing, and nothing else has changed."""
    environment = clone(
        tmp_path,
        {
            "bin/cargo": "#!/bin/sh\n",
            "bin/rustc": "#!/bin/sh\necho 'rustc 1.999.0 (of a test)'\n",
            "bin/a-python": FAKE_PYTHON,
            "scripts/python.sh": "#!/bin/sh\necho a-python\n",
        },
    )

    def makes(version: str) -> bool:
        (tmp_path / "version").write_text(version)
        done = subprocess.run(
            ["bash", tmp_path / "scripts/setup.sh"], env=environment, capture_output=True, text=True, check=True
        )  # fmt: skip
        return "making the virtual environment" in done.stdout

    assert [makes("(3, 11)"), makes("(3, 11)")] == [True, False]
    assert [makes("(3, 13)"), makes("(3, 13)")] == [True, False]
    python = tmp_path / ".venv/bin/python"
    python.unlink()
    python.symlink_to(tmp_path / "no-such-python")
    assert [makes("(3, 13)"), makes("(3, 13)")] == [True, False]


FAKE_PYTHON_OF_DIST = """#!/bin/sh
[ "$1" != scripts/man_page.py ] || { echo page; exit; }
cp "$ESPBENCH_MAN_PAGE" "$CLONE/page-in-the-wheel"
mkdir -p "$7"
: > "$7/espbench-0.2.0-py3-none-$ESPBENCH_PLATFORM.whl"
ls "$ESPBENCH_PROGRAMS" > "$CLONE/in-the-wheel"
echo "$7/some.whl"
"""


def test_the_wheel_that_was_made_is_named_and_no_older_one(tmp_path: Path) -> None:
    """`make deb` installs what this prints."""
    machine = platform.machine()
    environment = clone(
        tmp_path,
        {
            "bin/cargo": "#!/bin/sh\n",
            "bin/readelf": "#!/bin/sh\necho GLIBC_2.3 GLIBC_2.34 GLIBC_2.4\n",
            ".venv/bin/python": FAKE_PYTHON_OF_DIST,
        },
    )
    put_programs(tmp_path / "traffic/target/release")
    (tmp_path / "dist").mkdir()
    (tmp_path / f"dist/espbench-0.1.0-py3-none-manylinux_2_34_{machine}.whl").touch()
    for _ in range(2):
        done = subprocess.run(
            ["bash", tmp_path / "scripts/dist.sh"], env=environment, capture_output=True, text=True, check=True
        )  # fmt: skip
        assert done.stdout == f"dist/espbench-0.2.0-py3-none-manylinux_2_34_{machine}.whl\n"
        assert (tmp_path / done.stdout.strip()).is_file()
    assert (tmp_path / "in-the-wheel").read_text().split() == ["espbench-ixp", "espbench-traffic"]
    assert (tmp_path / "page-in-the-wheel").read_text() == "page\n"


ARM64 = "aarch64-unknown-linux-gnu"


@pytest.mark.parametrize(
    ("linker", "library", "lacks"),
    [
        (True, True, ""),
        (True, False, f"since Rust has no library for it: rustup target add {ARM64}"),
        (
            False,
            True,
            "since there is no aarch64-linux-gnu-gcc; as root: apt-get install -y gcc-aarch64-linux-gnu",
        ),
    ],
)
def test_a_wheel_for_arm64_is_made_too_or_what_it_lacks_is_named(
    tmp_path: Path, linker: bool, library: bool, lacks: str
) -> None:
    """`make dist` does this; the machine's own wheel is made in any case."""
    target = tmp_path / "traffic/target"
    environment = clone(
        tmp_path,
        {
            "bin/cargo": "#!/bin/sh\n",
            "bin/uname": "#!/bin/sh\necho x86_64\n",
            "bin/rustc": f"#!/bin/sh\necho {target if library else tmp_path / 'none'}\n",
            "bin/readelf": "#!/bin/sh\necho GLIBC_2.34\n",
            ".venv/bin/python": FAKE_PYTHON_OF_DIST,
        },
    )
    if linker:
        (tmp_path / "bin/aarch64-linux-gnu-gcc").symlink_to("/bin/true")
    else:  # this machine may have one
        environment["PATH"] = f"{tmp_path}/bin:{without_linker(tmp_path / 'others')}"
    for folder in (target / "release", target / ARM64 / "release"):
        put_programs(folder)
    done = subprocess.run(
        ["bash", tmp_path / "scripts/dist.sh", "all"], env=environment, capture_output=True, text=True, check=True
    )  # fmt: skip
    machines = ["x86_64"] if lacks else ["x86_64", "aarch64"]
    assert done.stdout.split() == [
        f"dist/espbench-0.2.0-py3-none-manylinux_2_34_{each}.whl" for each in machines
    ]
    assert done.stderr == (f"dist: no wheel for aarch64, {lacks}\n" if lacks else "")


def without_linker(folder: Path) -> Path:
    """Make a folder with links to the programs that the script needs; return it."""
    folder.mkdir()
    for name in ("bash", "sh", "cat", "cp", "dirname", "grep", "git", "ls", "mkdir", "mktemp", "mv", "rm", "sort",
                 "tail", "tr", "xargs", "test", "basename"):  # fmt: skip
        (folder / name).symlink_to(shutil.which(name) or name)
    return folder


def put_programs(folder: Path) -> None:
    """Put empty files into a folder, in the place of the programs that cargo builds there."""
    folder.mkdir(parents=True)
    for name in ("espbench-traffic", "espbench-ixp"):
        (folder / name).touch()


PACKAGES = """for-all /none
[root]
for-root /none
[virtual]
for-virtual /none
[test]
for-tests /none
"""
# It makes an environment whose espbench answers `doctor --real-time`.
PYTHON_OF_A_MACHINE = """#!/bin/sh
[ "$*" = "-m venv .venv" ] || exit 0
mkdir -p .venv/bin
ln -sf /bin/true .venv/bin/pip
printf '#!/bin/sh\n[ "$*" != "-m espbench doctor --real-time" ] || exit "$REAL_TIME"\n' > .venv/bin/python
chmod +x .venv/bin/python
"""


@pytest.mark.parametrize(
    ("user", "what", "real_time", "wanted"),
    [
        (0, "run", 0, ["for-all", "for-root"]),
        (0, "run", 4, ["for-all", "for-root", "for-virtual"]),
        (0, "run", 1, ["for-all", "for-root"]),
        (0, "test", 4, ["for-all", "for-root", "for-virtual", "for-tests"]),
        (1000, "run", 4, ["for-all", "for-virtual"]),
    ],
)
def test_packages_are_those_of_what_can_be_measured(
    tmp_path: Path, user: int, what: str, real_time: int, wanted: list[str]
) -> None:
    """Root in most containers gets no gateways in real time, and so needs what an ordinary user needs."""
    environment = clone(
        tmp_path,
        {
            "bin/id": f"#!/bin/sh\necho {user}\n",
            "bin/apt-get": '#!/bin/sh\necho "$*" >> "$CLONE/asked"\n',
            "bin/cargo": "#!/bin/sh\n",
            "bin/rustc": "#!/bin/sh\necho 'rustc 1.999.0 (of a test)'\n",
            "bin/a-python": PYTHON_OF_A_MACHINE,
            "scripts/python.sh": "#!/bin/sh\necho a-python\n",
            "scripts/packages.txt": PACKAGES,
        },
    )
    done = subprocess.run(
        ["bash", tmp_path / "scripts/setup.sh", what],
        env=environment | {"REAL_TIME": str(real_time)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == (4 if user else 0), done.stderr
    asked = done.stderr if user else (tmp_path / "asked").read_text()
    assert [word for word in asked.split() if word.startswith("for-")] == wanted


@pytest.mark.parametrize(
    ("codes", "commands", "code"),
    [
        ({}, ["doctor --real-time", "run plans/quick.yaml"], 0),
        ({"run": 3}, ["doctor --real-time", "run plans/quick.yaml"], 0),
        ({"run": 2}, ["doctor --real-time", "run plans/quick.yaml"], 2),
        ({"doctor": 4}, ["doctor --real-time", "build x86", "run plans/virtual-quick.yaml"], 0),
        ({"doctor": 4, "build": 4}, ["doctor --real-time", "build x86"], 4),
        ({"doctor": 1}, ["doctor --real-time"], 1),
    ],
)
def test_the_demo_measures_what_this_machine_can(
    tmp_path: Path, codes: dict[str, int], commands: list[str], code: int
) -> None:
    """It asks espbench, not who the user is. A run that is complete is a success."""
    answers = " ".join(f"{command}) exit {number} ;;" for command, number in codes.items())
    espbench = f'#!/bin/sh\nshift 2\necho "$*" >> "$CLONE/asked"\ncase $1 in {answers} *) ;; esac\n'
    environment = clone(tmp_path, {".venv/bin/python": espbench})
    done = subprocess.run(["bash", tmp_path / "scripts/demo.sh"], env=environment, check=False)
    assert done.returncode == code
    assert (tmp_path / "asked").read_text().splitlines() == commands
