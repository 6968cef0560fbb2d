#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the Rust of this checkout's HEAD, with its tests, with the cargo and rustc of a bare Debian 13.

Their version must be the `rust-version` of traffic/Cargo.toml, which is so proven to be sufficient. Prints the version
and the time of each step; the exit code is 1 if one failed. Needs root and Debian:

    python benchmarks/machines/rust_version.py
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import bare_roots
from bare_roots import PROJECT, REPOSITORY, Tried, run_inside, step

RELEASE = "trixie"
# traffic/build.rs compiles the XDP programs with clang.
PACKAGES = "cargo rustc clang libbpf-dev libc6-dev"


def main() -> int:
    """Compile the project in a root of its own; return the exit code."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    bare_roots.end_by_signals()
    tried = Tried(RELEASE)
    root = Path(tempfile.mkdtemp(prefix="rust-version-"))
    root.chmod(0o755)
    try:
        tried.failed = compiled(root, tried)
    except subprocess.CalledProcessError as error:
        said = error.stdout.strip().splitlines()[-15:] if error.stdout else []
        tried.failed = "\n".join([f"exit {error.returncode}: {error.cmd[-1]}", *said])
    finally:
        bare_roots.end_processes(root)
        subprocess.run(["rm", "-rf", "--one-file-system", str(root)], check=False)
    print(f"{RELEASE}: {', '.join(f'{name} {seconds:.0f} s' for name, seconds in tried.seconds.items())}")
    print(f"FAIL: {tried.failed}" if tried.failed else "pass")
    return int(bool(tried.failed))


def compiled(root: Path, tried: Tried) -> str:
    """Compile the project in this root; return the difference of its Rust version from traffic/Cargo.toml's.

    The text is empty if there is no difference.
    """
    with step(tried, "root"):
        bare_roots.make_root(RELEASE, root)
    with step(tried, "packages"):
        run_inside(root, f"apt-get update -qq && apt-get install -qq -y --no-install-recommends {PACKAGES}")
    said = run_inside(root, "rustc --version")
    print(said, end="", flush=True)
    with step(tried, "cargo check"):
        run_inside(root, f"cd /{PROJECT}/traffic && cargo check --quiet --locked --workspace --all-targets")
    return other_version(said, (REPOSITORY / "traffic/Cargo.toml").read_text())


def other_version(said: str, manifest: str) -> str:
    """Say how the version that rustc printed differs from the manifest's `rust-version`; empty if it does not."""
    named = re.search(r'^rust-version = "(\d+\.\d+)"$', manifest, re.MULTILINE)
    found = re.match(r"rustc (\d+\.\d+)\.", said)
    if named is None or found is None:
        return (
            f'expected rust-version = "1.N" in traffic/Cargo.toml, and "rustc 1.N.N" from rustc, got {said!r}'
        )
    if named[1] == found[1]:
        return ""
    return f"traffic/Cargo.toml has rust-version {named[1]}, but Debian {RELEASE} has Rust {found[1]}"


if __name__ == "__main__":
    sys.exit(main())
