#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the jobs of docs/ci.md as they are written there, each in a bare Debian 12, with a kernel that is built there.

    python benchmarks/machines/ci_jobs.py [GitHub] [GitLab]

A root is made as in bare_roots.py. It stands in for the runner: it has the project, with espbench in it and with the
files ci/… of the document, and a cache that this machine has filled (`espbench build x86`). The set-up of the job runs
as root, with a network. Everything after it runs as an ordinary user in a network namespace without any interface:

    the kernel is built, and its base is measured    as the document says: run, baseline
    the job                                          must end with 0
    the job, with a kernel whose frames cost more    must end with 5

Linux is Debian's linux-source-6.1, with the configuration gateway_kernel.config. Prints the time of each step. The exit
code is 1 if a step ended otherwise. Needs root and Debian.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from bare_roots import PROJECT, REPOSITORY, Tried, end_by_signals, make_root, run_inside, step, tell
from installed import bare, lend_gateways

DOCUMENT = REPOSITORY / "docs/ci.md"
CONFIGURATION = Path(__file__).with_name("gateway_kernel.config")
BUILDS, USER = "builds/project", "runner"
KERNEL_NEEDS = "linux-source-6.1 xz-utils make gcc libc6-dev flex bison bc libelf-dev libssl-dev"
# The user of the document writes this file. His tree is here Debian's.
BUILD_KERNEL = """\
#!/bin/sh
set -e
cd linux
make -s tinyconfig
cat ../ci/kernel.config >> .config
make -s olddefconfig
make -s -j"$(nproc)" bzImage
cp arch/x86/boot/bzImage /opt/gate/bzImage
"""
ESP, PLACE = "linux/net/ipv4/esp4.c", "\tesp.inplace = true;\n"
DEARER = '\t{ unsigned long left = 500; asm volatile("1: dec %0; jnz 1b" : "+r"(left) : : "cc"); }\n'
REGRESSED = 5


@dataclass(frozen=True)
class Job:
    """A job of the document. set_up: commands before the cache is there; script: those after it, in order.

    cache: the folder XDG_CACHE_HOME. espbench: the program, relative to the project.
    """

    name: str
    set_up: list[str]
    script: list[str]
    cache: str
    espbench: str = "espbench/.venv/bin/espbench"


def files(text: str) -> dict[str, str]:
    """Return the files of the document: name → content."""
    return dict(re.findall(r"```yaml\n# (ci/\S+)\n(.*?)```", text, re.DOTALL))


def job_of(text: str, name: str) -> Job:
    """Return the job in the section on this kind of runner."""
    section = text.partition(f"## A job on a {name}-like runner")[2]
    found = re.search(r"```yaml\n(.*?)```", section, re.DOTALL)
    if found is None:
        sys.exit(f"ci_jobs: {DOCUMENT.name}: expected a job for a {name}-like runner")
    return _READERS[name](yaml.safe_load(found[1])["jobs" if name == "GitHub" else "gate"])


def _github(jobs: dict[str, Any]) -> Job:
    gate = jobs["gate"]
    commands = [each["run"] for each in gate["steps"] if "run" in each]
    first = next(number for number, command in enumerate(commands) if "espbench build" in command)
    return Job("GitHub", commands[:first], commands[first:], gate["env"]["XDG_CACHE_HOME"])


def _gitlab(gate: dict[str, Any]) -> Job:
    cache = gate["variables"]["XDG_CACHE_HOME"].replace("$CI_PROJECT_DIR", f"/{BUILDS}")
    return Job("GitLab", gate["before_script"], gate["script"], cache)


_READERS: dict[str, Callable[[dict[str, Any]], Job]] = {"GitHub": _github, "GitLab": _gitlab}


def main() -> int:
    """Run each job; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("jobs", nargs="*", help=f"of {', '.join(_READERS)}; default: both")
    given = parser.parse_args()
    if unknown := set(given.jobs) - set(_READERS):
        parser.error(f"no such job: {', '.join(sorted(unknown))}; expected some of {', '.join(_READERS)}")
    end_by_signals()
    text = DOCUMENT.read_text()
    tried = [attempt(job_of(text, name), files(text)) for name in given.jobs or _READERS]
    return int(any(each.failed or each.left for each in tried))


def attempt(job: Job, written: dict[str, str]) -> Tried:
    """Make a root, and run the job there three times: for the base, unchanged, and with a dearer kernel."""
    tried = Tried(f"bookworm, {job.name}")
    try:
        with bare(tried) as root:
            with step(tried, "root"):
                make_root("bookworm", root)
                make_project(root, written)
            with step(tried, "set-up"):
                for command in job.set_up:
                    run_inside(root, f"cd /{BUILDS} && export XDG_CACHE_HOME={job.cache} && {command}")
                hand_over(root, job)
            with step(tried, "kernel"):
                as_user(root, job, "ci/build-kernel.sh")
            with step(tried, "base"):
                as_user(root, job, f"{job.espbench} run ci/kernel.yaml --no-report --out runs")
                as_user(root, job, f"{job.espbench} baseline runs/*-kernel && cp baseline.json ci/")
            with step(tried, "job"):
                for command in job.script:
                    as_user(root, job, command)
            make_dearer(root / BUILDS / ESP)
            with step(tried, "dearer kernel"):
                tried.failed = refused(root, job)
    except subprocess.CalledProcessError as error:
        said = error.stdout.strip().splitlines()[-15:] if error.stdout else []
        tried.failed = "\n".join([f"exit {error.returncode}: {error.cmd[-1]}", *said])
    tell(tried)
    return tried


def make_project(root: Path, written: dict[str, str]) -> None:
    """Put the project there, with espbench in it, the document's files, Linux and its build command."""
    project = root / BUILDS
    project.mkdir(parents=True)
    (root / PROJECT).rename(project / "espbench")
    run_inside(
        root, f"apt-get update -qq && apt-get install -qq -y --no-install-recommends passwd {KERNEL_NEEDS}"
    )
    run_inside(root, f"useradd --create-home {USER} && install -d -o {USER} /opt/gate")
    run_inside(
        root,
        f"cd /{BUILDS} && mkdir linux && tar -xJf /usr/src/linux-source-6.1.tar.xz -C linux --strip-components=1",
    )
    for name, content in written.items():
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(content)
    shutil.copy(CONFIGURATION, project / "ci/kernel.config")
    (project / "ci/build-kernel.sh").write_text(BUILD_KERNEL)
    (project / "ci/build-kernel.sh").chmod(0o755)


def hand_over(root: Path, job: Job) -> None:
    """Fill the job's cache, and give all that the job writes to the ordinary user."""
    lend_gateways(root, job.cache.lstrip("/"), USER)
    run_inside(root, f"chmod 711 /root && chown -R {USER}: /{BUILDS} {job.cache}")


def as_user(root: Path, job: Job, command: str) -> str:
    """Run a command of the job as the ordinary user, without a network; return its output."""
    settings = f"cd /{BUILDS}; export XDG_CACHE_HOME={job.cache} GITHUB_STEP_SUMMARY=/{BUILDS}/summary.md; "
    inner = f"exec su {USER} -s /bin/sh -c {shlex.quote(f'set -e; {settings}{command}')}"
    return run_inside(root, f"unshare --net sh -c {shlex.quote(inner)}")


def make_dearer(esp: Path) -> None:
    """Let each encrypted frame take a loop more."""
    text = esp.read_text()
    if PLACE not in text:
        sys.exit(f"ci_jobs: {ESP}: expected the line {PLACE.strip()!r}, which this kernel does not have")
    esp.write_text(text.replace(PLACE, DEARER + PLACE, 1))


def refused(root: Path, job: Job) -> str:
    """Run the job's script until a command fails, which must be the check; return what is wrong with that."""
    code = 0
    for command in job.script:
        try:
            as_user(root, job, command)
        except subprocess.CalledProcessError as error:
            if "espbench check" not in command:
                raise
            code = error.returncode
            break
    wrong = f"the job with the dearer kernel ended with {code}, expected {REGRESSED}"
    return "" if code == REGRESSED else wrong


if __name__ == "__main__":
    sys.exit(main())
