#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs what `make dist` and `make deb` built in bare Debian roots, as docs/install.md says, and measures with it.

The wheel: into a virtual environment of an ordinary user, who then builds gateways in virtual time and measures a
plan that came with it. The Debian package: with apt, by root; then the same. The container: the steps of Containerfile,
which do the same as the wheel; no container engine is needed, so what an engine adds is not tried. Prints what was
tried and how long each step took; ends with 1 if one failed. Needs root, Debian and dist/.

    python benchmarks/machines/installed.py [wheel] [deb] [container]
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bare_roots import REPOSITORY, Tried, end_processes, make_root, run_inside, statuses, step, tell

RELEASE = "bookworm"
FORMS = ("wheel", "deb", "container")
# An ordinary user of a wheel asks his administrator for these: docs/install.md, "Without a clone".
TOOLS = r"""sed -n '/^\[virtual\]/,/^\[/p' /root/espbench/scripts/packages.txt | sed '/^\[/d; s/ .*//'"""
APT = "apt-get install -qq -y"
AS_USER = "su somebody -c"
PLAN = """\
name: small
topology: gateway-to-gateway
dut: auto
stacks: [plain, xfrm]
suites: [aes128gcm16]
frame_sizes: [64]
tests:
  - throughput: {loss_goals: [0], trial: 20ms, final_trial: 40ms, resolution: 10%, maximum: 200000fps,
                 settle: 0, residue: 10ms, warm_up: 10ms, learning: 10ms}
"""


def main() -> int:
    """Try each form; the exit code."""
    parser = argparse.ArgumentParser(description="a wheel, a Debian package, a container; installed and used")
    parser.add_argument("forms", nargs="*", help=f"of {', '.join(FORMS)}; default: all")
    forms = parser.parse_args().forms or FORMS
    if unknown := set(forms) - set(FORMS):
        parser.error(f"no such form: {', '.join(sorted(unknown))}; expected some of {', '.join(FORMS)}")
    tried = [attempt(form) for form in forms]
    return int(any(each.failed or each.left for each in tried))


def attempt(form: str) -> Tried:
    """Make a root, install it there, measure as an ordinary user, remove the root."""
    tried = Tried(f"{RELEASE}, {form}")
    root = Path(tempfile.mkdtemp(prefix=f"installed-{form}-"))
    root.chmod(0o755)
    try:
        with step(tried, "root"):
            make_root(RELEASE, root)
            if form != "container":
                run_inside(root, "apt-get update -qq && useradd --create-home --shell /bin/bash somebody")
            shutil.copytree(REPOSITORY / "dist", root / "srv/dist")
            (root / "srv/small.yaml").write_text(PLAN)
        with step(tried, "install"):
            espbench = install(root, form)
        with step(tried, "examples"):
            said = run_inside(
                root,
                f"{AS_USER} 'cd && {espbench} --version; {espbench} example quick; {espbench} list duts'",
            )
        if not ("name: quick" in said and "virt-x86" in said):
            tried.failed = f"not what espbench has to say: {said}"
        with step(tried, "build"):  # of a container: it is there
            run_inside(root, f"{AS_USER} 'cd && {espbench} build x86'")
        with step(tried, "measure"):
            run_inside(root, f"{AS_USER} 'cd && {espbench} run /srv/small.yaml --out runs'")
        tried.statuses = statuses(root / "home/somebody/runs")
        if not tried.failed and dict(tried.statuses) != {"OK": 2}:
            tried.failed = "expected two results, both OK"
    except subprocess.CalledProcessError as error:
        said = error.stdout.strip().splitlines()[-15:] if error.stdout else []
        tried.failed = "\n".join([f"exit {error.returncode}: {error.cmd[-1]}", *said])
    finally:
        tried.left = end_processes(root)
        subprocess.run(["rm", "-rf", "--one-file-system", str(root)], check=False)
    tell(tried)
    return tried


def install(root: Path, form: str) -> str:
    """Install it; the program's path."""
    if form == "container":
        return recipe(root)
    if form == "deb":
        run_inside(root, f"{APT} /srv/dist/espbench_*.deb man-db")
        run_inside(root, "man --warnings espbench >/dev/null")
        return "/usr/bin/espbench"
    run_inside(root, f"{APT} --no-install-recommends python3-venv gcc libc6-dev ca-certificates $({TOOLS})")
    run_inside(
        root, f"{AS_USER} 'cd && python3 -m venv e && e/bin/pip install -q /srv/dist/espbench-*_x86_64.whl'"
    )
    return "e/bin/espbench"


def recipe(root: Path) -> str:
    """Do what Containerfile says, but for the image that it begins with; the program's path."""
    user, entry = "root", ""
    text = (REPOSITORY / "Containerfile").read_text().replace("\\\n", " ")
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        match word:
            case "RUN":
                as_user = (
                    rest
                    if user == "root"
                    else f"{AS_USER.replace('somebody', user)} {shlex.quote(f'cd && {rest}')}"
                )
                run_inside(root, as_user)
            case "COPY":
                *sources, target = rest.split()
                for source in (file for pattern in sources for file in REPOSITORY.glob(pattern)):
                    shutil.copy(source, root / target.lstrip("/"))
            case "USER":
                user = rest
            case "ENTRYPOINT":
                (entry,) = json.loads(rest)
            case "" | "#" | "FROM" | "WORKDIR" | "CMD":
                pass
            case _:
                raise SystemExit(f"Containerfile: {word}: what does that do here?")
    return entry


if __name__ == "__main__":
    sys.exit(main())
