# SPDX-License-Identifier: Apache-2.0
"""Builds a revision that `--against BASE` names, which may also be a run or a file of espbench baseline."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from espbench.errors import UsageError
from espbench.gate.commits.tree import Commit, Tree, build, written_since
from espbench.plan import ResolvedPlan


@dataclass
class Building:
    """The way to build a revision: the user's command, the git tree, and the paths of the plan that it should write.

    work: a folder for checkouts and logs. standing: the revision whose build stands where the plan looks, whole or in
    part; empty if that is the tree's own build, or if nothing was built.
    """

    tree: Tree
    command: str
    work: Path
    paths: Sequence[Path]
    standing: str = field(default="", init=False)

    def build(self, commit: Commit | None) -> bool:
        """Build a commit in a checkout, or (None) the tree as it is; return whether a path of the plan was written."""
        name = commit.name if commit else "the tree as it stands"
        folder = self.tree.path
        if commit is not None:
            folder = self.work / "tree"
            self.tree.checkout(folder, commit)
        print(f"building {commit or name}: {self.command}", file=sys.stderr)
        moment_ns = time.time_ns()
        self.standing = str(commit or name)  # even a command that fails may have written some files
        build(self.command, folder, name, self.work / f"build-{name[:12].replace(' ', '-')}.log")
        if commit is None:
            self.standing = ""
        return written_since(self.paths, moment_ns)

    def close(self) -> None:
        """Remove the checkout."""
        self.tree.forget(self.work / "tree")

    def tell(self) -> None:
        """Say which build stands where the plan looks, if not the tree's own, and how to build that again."""
        if self.standing:
            print(
                f"built now: {self.standing}, and not the tree's own build\n"
                f"  where: {', '.join(map(str, self.paths)) or 'where the command installs it'}\n"
                f"  to build the tree's own: (cd {shlex.quote(str(self.tree.path))}; "
                f'export ESPBENCH_TREE="$PWD"; {self.command})',
                file=sys.stderr,
            )


def building(resolved: ResolvedPlan, tree: Path | None, command: str | None, work: Path) -> Building:
    """Return how to build revisions; raise UsageError without a command, without git, or outside a git tree."""
    if not command:
        raise UsageError("--build: expected the command that builds a revision, got none")
    if not shutil.which("git"):
        raise UsageError("git: not found; a revision takes it: apt-get install git")
    return Building(Tree(tree or Path.cwd()), command, work, own_paths(resolved))


def own_paths(resolved: ResolvedPlan) -> list[Path]:
    """Return the paths of the user's own files that a plan names: folders of daemons, kernels, modules, overlays."""
    prefixes = [stack.prefix_beside(resolved.path) for stack in resolved.plan.stacks]
    kernels = [
        Path(path)
        for profile in resolved.profiles
        if profile is not None
        for gateways in (profile.kernel, profile.modules, profile.overlay)
        if gateways is not None
        for path in (gateways.home, gateways.office)
        if "/" in path
    ]
    return [*dict.fromkeys([*(path for path in prefixes if path is not None), *kernels])]


def unknown(against: str) -> UsageError:
    """Return the error for a base that is neither a run, nor a file, nor an arm, nor a revision."""
    return UsageError(
        f"--against {against}: no base\n"
        "  expected: a run directory, a file that espbench baseline wrote, the reference of the plan's compare, or "
        "with --build a git revision\n"
        "  got: nothing of that name; no base is ever made silently\n"
        "  what to do: measure one (espbench run PLAN), or write one (espbench baseline RUN)"
    )
