#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the image that Containerfile describes with Podman, and measures in a container of it without a network.

The base image is the one that Containerfile's FROM line names. `podman build` gets it from a local store, where this
program puts a bare Debian of the same release under that name; mmdebstrap makes it from the mirror that apt uses here.
So no registry of images is needed. The base image also has this machine's settings for package registries. All images
and containers are in a folder of their own, which is removed at the end.

    make dist                                              # the wheel that goes into the image
    python benchmarks/machines/container_image.py [--runtime runc]

Prints the time of each step, the size of the image and the statuses of the results; the exit code is 1 if a step failed
or a result is not OK. Needs root, Debian, and the packages podman and mmdebstrap.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from bare_roots import REPOSITORY, Tried, checked, end_by_signals, make_root, statuses, step, tell
from installed import PLAN, release_of_container

USER = 1000  # the id of the image's user
# Older versions of crun and runc try to raise these limits, which a virtual machine may refuse.
LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")


def main() -> int:
    """Build the image, measure in a container, and remove both; return the exit code."""
    parser = argparse.ArgumentParser(description="the image of Containerfile, built and used")
    parser.add_argument("--runtime", default="", help="podman's runtime for the container, for example runc")
    given = parser.parse_args()
    end_by_signals()
    if missing := [name for name in ("podman", "mmdebstrap") if not shutil.which(name)]:
        sys.exit(f"container_image: expected {' and '.join(missing)}: apt-get install {' '.join(missing)}")
    tried = Tried(f"{release_of_container()}, image")
    try:
        with store() as podman:
            tried.statuses = built_and_used(tried, podman, given.runtime)
        if dict(tried.statuses) != {"OK": 2}:
            tried.failed = "expected two results, both OK"
    except subprocess.CalledProcessError as error:
        tried.failed = "\n".join([f"exit {error.returncode}: {error.cmd}", *error.stdout.splitlines()[-15:]])
    tell(tried)
    return int(bool(tried.failed))


@contextlib.contextmanager
def store() -> Iterator[list[str]]:
    """Yield the first words of a podman command that uses an empty store, which is removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="container-image-"))
    podman = ["podman", "--root", str(folder / "store"), "--runroot", str(folder / "run")]
    podman += ["--storage-driver", "vfs"]  # works in any file system, without a module of the kernel
    try:
        yield podman
    finally:
        subprocess.run([*podman, "rm", "--all", "--force"], capture_output=True, check=False)
        subprocess.run(["rm", "-rf", "--one-file-system", str(folder)], check=False)


def built_and_used(tried: Tried, podman: list[str], runtime: str) -> Counter[str]:
    """Build the image, run a small plan in a container of it, and return the results' statuses and their numbers."""
    with tempfile.TemporaryDirectory(prefix="container-image-") as made:
        with step(tried, "base image"):
            base(podman, Path(made) / "root")
        with step(tried, "podman build"):
            checked([*podman, "build", "--quiet", "--isolation", "chroot", "--pull=never", "--tag", "espbench",
                     str(REPOSITORY)])  # fmt: skip
        size = checked([*podman, "image", "inspect", "espbench", "--format", "{{.Size}}"])
        print(f"the image has {int(size) / 1e6:,.0f} MB", flush=True)
        work = Path(made) / "work"
        work.mkdir()
        (work / "small.yaml").write_text(PLAN)
        shutil.chown(work, USER, USER)
        used = [*(["--runtime", runtime] if runtime else []), "run", "--rm", "--network", "none", *LIMITS]
        used += ["--shm-size", "1g", "--volume", f"{work}:/work:Z", "espbench"]
        with step(tried, "two cases"):
            checked([*podman, *used, "run", "small.yaml", "--out", "runs"])
        return statuses(work / "runs")


def base_name() -> str:
    """Return the name of the base image, from Containerfile's FROM line."""
    lines = (REPOSITORY / "Containerfile").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith("FROM "))


def base(podman: list[str], root: Path) -> None:
    """Make a bare Debian, and import it under the name of Containerfile's base image."""
    make_root(release_of_container(), root)
    tar = ["tar", "--create", "--numeric-owner", "--exclude=./root/espbench", "-C", str(root), "."]
    with subprocess.Popen(tar, stdout=subprocess.PIPE) as packed:
        name = base_name()
        done = subprocess.run(
            [*podman, "import", "--quiet", "-", name], stdin=packed.stdout, capture_output=True, text=True, check=False
        )  # fmt: skip
    if packed.returncode or done.returncode:
        sys.exit(f"container_image: podman import: {done.stderr.strip()}")


if __name__ == "__main__":
    sys.exit(main())
