# SPDX-License-Identifier: Apache-2.0
"""Compares the user's kernels, modules and daemons on two machines that measure one plan in real time.

In real time these files are not sent: each machine has its own, at the path that the plan names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from espbench.errors import MachineLacks
from espbench.plan import Profile, ResolvedPlan

_MISSING = "nothing"
_DIGITS = 16


def digests(resolved: ResolvedPlan, profiles: Iterable[Profile | None]) -> dict[str, str]:
    """Return a digest of each file and folder of the user's that the plan or a profile names, by its path.

    A kernel that is named without a folder is one of the machine's programs, not the user's file.
    """
    paths = {stack.prefix_beside(resolved.path) for stack in resolved.plan.stacks} - {None}
    for profile in filter(None, profiles):
        for named in (profile.own_kernel, profile.modules):
            if named is not None:
                paths |= {Path(path) for path in (named.home, named.office) if "/" in path}
    return {str(path): _digest(path) for path in sorted(filter(None, paths))}


def demand_same(expected: Mapping[str, str]) -> None:
    """Raise MachineLacks if a file of the user's differs here; expected: the digests of the machine with the run."""
    for path, digest in expected.items():
        if (got := _digest(Path(path))) != digest:
            raise MachineLacks(
                f"{path}: expected the same files as on the machine where the run was started (SHA-256 {digest}…), "
                f"got {got if got == _MISSING else f'others ({got}…)'}",
                f"copy {path} to this machine, to the same path",
            )


def _digest(path: Path) -> str:
    """Return a digest of a file, or of the names and contents of all files in a folder, through links."""
    if not path.exists():
        return _MISSING
    whole = hashlib.sha256()
    for file in [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file()):
        with file.open("rb") as content:
            whole.update(f"{file.relative_to(path)}\0".encode())
            whole.update(hashlib.file_digest(content, "sha256").digest())
    return whole.hexdigest()[:_DIGITS]
