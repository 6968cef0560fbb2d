# SPDX-License-Identifier: Apache-2.0
"""The user's tree at its revisions: what git says of them, a checkout beside it, the command that builds one.

Nothing in the user's own working tree is touched. The command puts what it builds where the plan looks for it; for that
it finds the checkout in ESPBENCH_TREE, where it also begins, and the revision in ESPBENCH_COMMIT.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from espbench.errors import EspbenchError, UsageError

_LAST_LINES = 12
_PATIENCE_S = 5.0  # for a build that is asked to end
_POLL_S = 0.05
# These are the variables that `git rev-parse --local-env-vars` lists.
_OF_A_REPOSITORY = frozenset({
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT",
    "GIT_OBJECT_DIRECTORY", "GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_GRAFT_FILE", "GIT_INDEX_FILE",
    "GIT_NO_REPLACE_OBJECTS", "GIT_REPLACE_REF_BASE", "GIT_PREFIX", "GIT_INTERNAL_SUPER_PREFIX", "GIT_SHALLOW_FILE",
    "GIT_COMMON_DIR",
})  # fmt: skip


@dataclass(frozen=True)
class Commit:
    """A commit by its full name, with the first line of its message."""

    name: str
    subject: str

    def __str__(self) -> str:
        return f"{self.name[:12]} {self.subject}"


class BuildFailed(EspbenchError):
    """The user's command did not end with 0; `what` says so, and the text has its last lines too."""

    def __init__(self, what: str, last_lines: Sequence[str]) -> None:
        super().__init__(f"{what}, at last:\n" + "\n".join(f"  {line}" for line in last_lines))
        self.what = what


class Tree:
    """A git repository of the user's."""

    def __init__(self, folder: Path) -> None:
        """Raise UsageError if the path is not in a git tree."""
        self.path = Path(
            _git(folder, "rev-parse", "--show-toplevel", what=f"{folder} is no git tree").strip()
        )

    def commit(self, revision: str) -> Commit:
        """Return the commit that a revision names; UsageError if it names none."""
        expected = f"{revision}: no revision of {self.path}"
        asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        name = _git(self.path, *asked, what=expected).strip()
        (commit,) = _log(self.path, "-1", name, what=expected)
        return commit

    def between(self, good: Commit, bad: Commit) -> list[Commit]:
        """List the commits from good to bad, with both, along first parents; UsageError if good is not among bad's."""
        span = f"{good.name}..{bad.name}"
        commits = _log(self.path, "--first-parent", "--reverse", span, what=span)
        parent = _git(self.path, "rev-parse", f"{commits[0].name}^", what=span).strip() if commits else ""
        if parent != good.name:
            raise UsageError(
                f"--good {good}\n  expected: an ancestor of --bad along first parents (git log --first-parent)\n"
                f"  got: {bad}\n  what to do: name two commits of one branch, the older one as --good"
            )
        return [good, *commits]

    def checkout(self, folder: Path, commit: Commit) -> None:
        """Put this commit into the folder, a worktree of its own; what was built there before stays.

        Raise UsageError if the folder exists and is no worktree: git would then change the tree that contains it.
        """
        if folder.exists():
            if not _is_worktree(folder):
                raise UsageError(
                    f"{folder}: no place for a checkout\n"
                    "  expected: no such folder, or the checkout that an earlier check or bisection left there\n"
                    f"  got: {'a folder that is no worktree of git' if folder.is_dir() else 'a file'}\n"
                    "  what to do: move it away or remove it, or give another --out"
                )
            _git(folder, "checkout", "--force", "--detach", commit.name, what=f"{folder}: cannot check out")
        else:
            folder.parent.mkdir(parents=True, exist_ok=True)
            _git(self.path, "worktree", "prune", what="cannot prune worktrees")
            _git(
                self.path, "worktree", "add", "--detach", str(folder.absolute()), commit.name,
                what=f"{folder}: cannot make a worktree",
            )  # fmt: skip

    def forget(self, folder: Path) -> None:
        """Remove the worktree, if there is one; any other folder stays."""
        if _is_worktree(folder):
            _git(
                self.path, "worktree", "remove", "--force", str(folder.absolute()), what=f"{folder}: cannot remove"
            )  # fmt: skip


def build(command: str, folder: Path, commit: str, log: Path) -> None:
    """Run the user's command there; BuildFailed with the end of what it said where it does not end with 0.

    If espbench is interrupted, the command and all that it started end first.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"ESPBENCH_TREE": str(folder.absolute()), "ESPBENCH_COMMIT": commit}
    with log.open("wb") as said:
        # The session lets the shell and its children get signals together.
        process = subprocess.Popen(
            command, shell=True, cwd=folder, env=environment, stdout=said, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            code = process.wait()
        except BaseException:
            _end(process)
            raise
    if code:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:]
        raise BuildFailed(
            f"--build: the command ended with {code} at {commit[:12]}; all it said is in {log}",
            lines,
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a shell and its children; those that do not end when they are asked to are killed.

    They get some time, since make(1) removes what it has written half.
    """
    # The group is gone, or all that is left of it belongs to another user.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)
        until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until:
            process.poll()
            os.killpg(process.pid, 0)
            time.sleep(_POLL_S)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def written_since(paths: Sequence[Path], moment_ns: int) -> bool:
    """Return whether a file below one of the paths was written since then, also one that was given an older date."""
    return any(
        file.lstat().st_ctime_ns >= moment_ns
        for path in paths
        for file in ([path] if path.is_file() else path.rglob("*"))
        if not file.is_dir()
    )


def _is_worktree(folder: Path) -> bool:
    """Return whether the folder is the top of a linked worktree, whose `.git` is a file."""
    if not (folder / ".git").is_file():
        return False
    top = _git(folder, "rev-parse", "--show-toplevel", what=f"{folder}: a damaged checkout; remove it")
    return Path(top.removesuffix("\n")) == folder.resolve()


def _log(folder: Path, *arguments: str, what: str) -> list[Commit]:
    """List commits. A subject may contain anything but NUL, and the user's settings may add signatures to a log."""
    words = ("-c", "log.showSignature=false", "log", "-z", "--format=%H %s", *arguments)
    lines = _git(folder, *words, what=what).split("\0")
    return [Commit(*line.split(" ", 1)) for line in lines if line]


def _environment() -> dict[str, str]:
    """Return the environment for git. In a git hook it names the user's repository and index, which are not meant."""
    return {name: value for name, value in os.environ.items() if name not in _OF_A_REPOSITORY} | {
        "LC_ALL": "C"
    }


def _git(folder: Path, *arguments: str, what: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, check=False,
            env=_environment(), stdin=subprocess.DEVNULL, encoding="utf-8", errors="replace",
        )  # fmt: skip
    except FileNotFoundError:
        raise UsageError("git: not found; a revision takes it: apt-get install git") from None
    if done.returncode:
        raise UsageError(f"{what}: git says: {done.stderr.strip() or done.returncode}")
    return done.stdout
