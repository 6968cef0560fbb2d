#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs espbench in bare Debian roots as docs/install.md says, without a clone there, and measures with it.

    wheel       the wheel in dist/, installed by pipx, as an ordinary user; an extra, the completion of commands, and
                the manual page are tried as the same document says
    deb         the package that `make deb` builds in a root of the same release, installed by apt in a second root; the
                Python packages of its extras are imported
    container   the steps of Containerfile, one after the other, without a container engine, so the engine's own part is
                not tested. The root is always of the release in the file's FROM line

Then an ordinary user prints an example, builds gateways in virtual time, and measures two cases. Prints the results and
the time of each step; the exit code is 1 if one failed. Needs root, Debian and (except for deb) the wheel in dist/.

    python benchmarks/machines/installed.py [wheel] [deb] [container] [--release bookworm --release trixie] [--built]
        [--keep FOLDER]

With --built the user gets the gateways that this machine has built (`espbench build x86`), under the same keys. Then
only the installation is tested, and not whether the gateways can be built in the root. With --keep each run is copied
into a folder of that name, so that the runs of two releases can be compared.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bare_roots import (
    PROJECT,
    RELEASES,
    REPOSITORY,
    Tried,
    end_by_signals,
    end_processes,
    make_root,
    run_inside,
    statuses,
    step,
    tell,
)

FORMS = ("wheel", "deb", "container")
# The packages that a user of a wheel needs from the administrator (docs/install.md, "Without a clone").
TOOLS = r"""sed -n '/^\[virtual\]/,/^\[/p' /root/espbench/scripts/packages.txt | sed '/^\[/d; s/ .*//'"""
APT = "apt-get install -qq -y"
AS_USER = "su somebody -c"
AFTER_PIPX = r"""set -e
cd
venv=$(pipx environment --value PIPX_LOCAL_VENVS)/espbench
EXTRA
"$venv"/bin/python -c 'import distributed'
~/.local/bin/espbench --install-completion
bash -ic 'complete -p espbench'
test -f "$venv"/share/man/man1/espbench.1
if dpkg --compare-versions "$(pipx --version)" ge 1.3; then test -f ~/.local/share/man/man1/espbench.1; fi
"""
IMPORT_EXTRAS = "/usr/lib/espbench/bin/python3 -c 'import distributed, labgrid, prometheus_client'"
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
    """Try each form in each release; return the exit code."""
    parser = argparse.ArgumentParser(description="a wheel, a Debian package, a container; installed and used")
    parser.add_argument("forms", nargs="*", help=f"of {', '.join(FORMS)}; default: all")
    parser.add_argument("--release", action="append", choices=RELEASES, help="default: each")
    parser.add_argument("--built", action="store_true", help="with the gateways of this machine's cache")
    parser.add_argument("--keep", type=Path, help="copy each run into a folder of this one")
    given = parser.parse_args()
    forms = given.forms or FORMS
    end_by_signals()
    if unknown := set(forms) - set(FORMS):
        parser.error(f"no such form: {', '.join(sorted(unknown))}; expected some of {', '.join(FORMS)}")
    tried = []
    for form in forms:
        releases = [release_of_container()] if form == "container" else given.release or RELEASES
        for release in releases:
            kept = given.keep and given.keep / f"{release}-{form}"
            tried.append(attempt(form, release, built_here=given.built, kept=kept))
    return int(any(each.failed or each.left for each in tried))


def release_of_container() -> str:
    """Return the Debian release in Containerfile's FROM line."""
    begins = re.search(r"^FROM \S*debian:(\w+)", (REPOSITORY / "Containerfile").read_text(), re.M)
    if begins is None:
        sys.exit(
            "installed: Containerfile: expected a line that begins with FROM and names a release of Debian"
        )
    return begins[1]


def attempt(form: str, release: str, *, built_here: bool, kept: Path | None = None) -> Tried:
    """Make a root, install espbench there, measure as an ordinary user, and remove the root; kept: gets the run."""
    tried = Tried(f"{release}, {form}{', gateways built before' if built_here else ''}")
    try:
        with tempfile.TemporaryDirectory(prefix=f"installed-{form}-") as built:
            if form == "deb":
                with bare(tried) as root, step(tried, "make deb"):
                    make_root(release, root)
                    run_inside(root, f"cd /{PROJECT} && make deb")
                    shutil.copytree(root / PROJECT / "dist", built, dirs_exist_ok=True)
            else:
                shutil.copytree(REPOSITORY / "dist", built, dirs_exist_ok=True)
            with bare(tried) as root:
                used(tried, form, release, root, Path(built), built_here=built_here)
                if kept is not None:
                    shutil.copytree(root / "home/somebody/runs", kept)
    except subprocess.CalledProcessError as error:
        said = error.stdout.strip().splitlines()[-15:] if error.stdout else []
        tried.failed = "\n".join([f"exit {error.returncode}: {error.cmd[-1]}", *said])
    tell(tried)
    return tried


@contextmanager
def bare(tried: Tried) -> Iterator[Path]:
    """Yield a folder for a root; afterwards end and record the processes that still run in it, and remove it."""
    root = Path(tempfile.mkdtemp(prefix="installed-"))
    root.chmod(0o755)
    try:
        yield root
    finally:
        tried.left += end_processes(root)
        subprocess.run(["rm", "-rf", "--one-file-system", str(root)], check=False)


def used(tried: Tried, form: str, release: str, root: Path, built: Path, *, built_here: bool) -> None:
    """Install espbench in a bare root from the files in `built`, and measure with it."""
    with step(tried, "root"):
        make_root(release, root)
        if form != "container":
            run_inside(
                root,
                f"apt-get update -qq && {APT} passwd && useradd --create-home --shell /bin/bash somebody",
            )
        shutil.copytree(built, root / "srv/dist")
        (root / "srv/small.yaml").write_text(PLAN)
        if built_here and form != "container":
            lend_gateways(root, "home/somebody/.cache", "somebody")
    with step(tried, "install"):
        espbench = install(root, form)
    with step(tried, "examples"):
        said = run_inside(
            root,
            f"{AS_USER} 'cd && {espbench} --version; {espbench} example quick; {espbench} list duts'",
        )
    if not ("name: quick" in said and "virt-x86" in said):
        tried.failed = f"not what espbench has to say: {said}"
    if form == "wheel":
        with step(tried, "extra"):
            (root / "srv/after.sh").write_text(AFTER_PIPX.replace("EXTRA", documented_extra()))
            run_inside(root, f"{AS_USER} 'bash /srv/after.sh'")
    if form == "deb":
        with step(tried, "extras"):
            run_inside(root, IMPORT_EXTRAS)
    with step(tried, "build"):  # a container has built them already
        run_inside(root, f"{AS_USER} 'cd && {espbench} build x86'")
    with step(tried, "measure"):
        run_inside(root, f"{AS_USER} 'cd && {espbench} run /srv/small.yaml --out runs'")
    tried.statuses = statuses(root / "home/somebody/runs")
    if not tried.failed and dict(tried.statuses) != {"OK": 2}:
        tried.failed = "expected two results, both OK"


def lend_gateways(root: Path, target_cache: str, user: str) -> None:
    """Copy the x86 gateways of this machine's cache into a user's cache, a folder relative to the root."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "espbench/e500"
    target = root / target_cache / "espbench/e500"
    for part in cache.glob("x86-*"):
        shutil.copytree(part, target / part.name)
    run_inside(root, f"chown -R {user}: /{target_cache}")


def install(root: Path, form: str) -> str:
    """Install espbench; return the program's path."""
    if form == "container":
        return recipe(root)
    if form == "deb":
        run_inside(root, f"{APT} /srv/dist/espbench_*.deb man-db")
        run_inside(root, "man --warnings espbench >/dev/null")
        return "/usr/bin/espbench"
    run_inside(root, f"{APT} --no-install-recommends pipx gcc libc6-dev ca-certificates $({TOOLS})")
    run_inside(root, f"{AS_USER} 'cd /srv && pipx install ./dist/espbench-*_x86_64.whl'")
    return "~/.local/bin/espbench"


def documented_extra() -> str:
    """Return the command of docs/install.md that adds an extra to what pipx installed."""
    text = (REPOSITORY / "docs/install.md").read_text()
    command = re.search(r"^pipx runpip espbench install .*?(?=  +#)", text, re.MULTILINE)
    if command is None:
        sys.exit("installed: docs/install.md: expected a line that begins with pipx runpip espbench install")
    return command[0]


def recipe(root: Path) -> str:
    """Execute the steps of Containerfile, except its FROM line; return the program's path."""
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
                *_, entry = json.loads(rest)
            case "" | "#" | "FROM" | "WORKDIR" | "CMD":
                pass
            case _:
                raise SystemExit(f"Containerfile: {word}: what does that do here?")
    return entry


if __name__ == "__main__":
    sys.exit(main())
