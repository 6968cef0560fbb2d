# SPDX-License-Identifier: Apache-2.0
"""The user's tree at its revisions, with real git and a real build command."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from espbench.errors import UsageError
from espbench.gate.commits import tree as tree_module
from espbench.gate.commits.tree import BuildFailed, Tree, build, written_since

PATIENCE_S = 30.0


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    done = subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments],
        check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.stdout.strip()


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten commits, of which the n-th has a file that says n; a branch is merged into the sixth."""
    folder = tmp_path_factory.mktemp("grown")
    git(folder, "init", "-q", "-b", "main")
    for number in range(10):
        (folder / "cost").write_text(f"{number}\n")
        git(folder, "add", "cost")
        git(folder, "commit", "-q", "-m", f"commit {number}")
        if number == 4:
            git(folder, "branch", "side")
        if number == 5:
            git(folder, "checkout", "-q", "side")
            (folder / "aside").write_text("x")
            git(folder, "add", "aside")
            git(folder, "commit", "-q", "-m", "aside")
            git(folder, "checkout", "-q", "main")
            git(folder, "merge", "-q", "--no-ff", "-m", "merge", "side")
    return folder


@pytest.fixture
def tree(grown: Path, tmp_path: Path) -> Path:
    """A copy of the grown tree."""
    return shutil.copytree(grown, tmp_path / "tree")


def test_the_span_goes_along_first_parents(tree: Path) -> None:
    repository = Tree(tree)
    span = repository.between(repository.commit("main~10"), repository.commit("main"))
    assert [commit.subject for commit in span] == [
        "commit 0", "commit 1", "commit 2", "commit 3", "commit 4", "commit 5", "merge", "commit 6", "commit 7",
        "commit 8", "commit 9",
    ]  # fmt: skip


def test_subjects_are_taken_as_they_are(tmp_path: Path) -> None:
    """A subject may have characters at which Python ends a line, or bytes that are no UTF-8, or be empty."""
    git(tmp_path, "init", "-q", "-b", "main")
    subjects = [b"first", b"a\x0cb\x1cc", b"caf\xe9", b""]
    stream = b""
    for subject in subjects:
        stream += b"commit refs/heads/main\ncommitter n <e@example.org> 1700000000 +0000\n"
        stream += b"data %d\n%s\n" % (len(subject), subject)
    subprocess.run(["git", "-C", tmp_path, "fast-import", "--quiet"], input=stream, check=True)
    repository = Tree(tmp_path)
    span = repository.between(repository.commit("main~3"), repository.commit("main"))
    assert [commit.subject for commit in span] == ["first", "a\x0cb\x1cc", "caf\ufffd", ""]


def test_signatures_are_no_commits(tmp_path: Path) -> None:
    """The user's settings may show them in each log; the program that checks them is made up here."""
    git(tmp_path, "init", "-q", "-b", "main")
    program = tmp_path / "gpg"
    program.write_text("#!/bin/sh\necho good signature >&2\n")
    program.chmod(0o755)
    git(tmp_path, "config", "log.showSignature", "true")
    git(tmp_path, "config", "gpg.program", str(program))
    who = "n <e@example.org> 1700000000 +0000"
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
    (tmp_path / "signed").write_text(
        f"tree {git(tmp_path, 'mktree')}\nauthor {who}\ncommitter {who}\n{signature}\n\nsigned\n"
    )
    name = git(tmp_path, "hash-object", "-t", "commit", "-w", str(tmp_path / "signed"))
    assert "good signature" in git(tmp_path, "log", name)
    assert Tree(tmp_path).commit(name).subject == "signed"


@pytest.mark.parametrize(("good", "bad"), [("main", "main~3"), ("side", "main"), ("main", "main")])
def test_good_must_come_before_bad(tree: Path, good: str, bad: str) -> None:
    repository = Tree(tree)
    with pytest.raises(UsageError, match="an ancestor of --bad along first parents"):
        repository.between(repository.commit(good), repository.commit(bad))


def test_a_checkout_leaves_the_users_tree_alone(tree: Path, tmp_path: Path) -> None:
    (tree / "cost").write_text("not committed\n")
    repository, folder = Tree(tree), tmp_path / "work" / "tree"
    for revision in ("main~3", "main"):
        commit = repository.commit(revision)
        repository.checkout(folder, commit)
        out = tmp_path / "built"
        command = f'cp cost {out}; echo "$ESPBENCH_COMMIT" >> {out}; test "$PWD" = "$ESPBENCH_TREE"'
        build(command, folder, commit.name, tmp_path / "log")
        assert out.read_text() == f"{commit.subject[-1]}\n{commit.name}\n"
    (folder / "left by a build").touch()
    repository.forget(folder)
    assert not folder.exists()
    assert (tree / "cost").read_text() == "not committed\n"
    assert git(tree, "worktree", "list").count("\n") == 0


@pytest.mark.parametrize("kind", ["folder", "clone", "file"])
def test_a_folder_that_is_no_worktree_is_neither_used_nor_removed(tree: Path, kind: str) -> None:
    """Git would check out into the user's tree, which contains the folder, and overwrite what is not committed."""
    (tree / "cost").write_text("not committed\n")
    repository, folder = Tree(tree), tree / "runs" / "check" / "tree"
    folder.parent.mkdir(parents=True)
    if kind == "clone":
        git(tree, "clone", "-q", str(tree), str(folder))
    elif kind == "folder":
        folder.mkdir()
    else:
        folder.touch()
    with pytest.raises(UsageError, match=r"runs/check/tree: no place for a checkout\n(.*\n)+.*remove it"):
        repository.checkout(folder, repository.commit("main~3"))
    repository.forget(folder)
    assert folder.exists()
    assert (tree / "cost").read_text() == "not committed\n"
    assert git(tree, "rev-parse", "--abbrev-ref", "HEAD") == "main"
    assert kind != "clone" or git(folder, "rev-parse", "--abbrev-ref", "HEAD") == "main"


def test_a_checkout_inside_the_users_tree_is_used_again(tree: Path) -> None:
    repository, folder = Tree(tree), tree / "runs" / "check" / "tree"
    for revision in ("main~3", "main"):
        repository.checkout(folder, repository.commit(revision))
    assert (folder / "cost").read_text() == "9\n"
    repository.forget(folder)
    assert not folder.exists()


def test_a_build_that_fails_is_told_with_its_last_words(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(
        BuildFailed, match=r"ended with 7 at abc; all it said is in .*log, at last:\n  no compiler"
    ):
        build("echo no compiler; exit 7", tree, "abc", tmp_path / "log")


@pytest.mark.parametrize("deaf", ["", "trap '' TERM; "])
def test_an_interrupted_build_ends_with_all_that_it_started(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deaf: str
) -> None:
    """SIGTERM reaches espbench alone, and `make -j` would go on; what ignores it is killed.

    The command waits first, so that espbench does not only begin to start it when the signal comes.
    """
    monkeypatch.setattr(tree_module, "_PATIENCE_S", 0.2)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    main = threading.main_thread().ident
    assert main is not None

    def interrupt_when_it_runs() -> None:
        select.select([reader], [], [], PATIENCE_S)
        signal.pthread_kill(main, signal.SIGINT)

    waiting = threading.Thread(target=interrupt_when_it_runs)
    waiting.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            build(
                f"{deaf}exec > {pipe}; (sleep 0.5; echo running; sleep 600; true); true",
                tree,
                "abc",
                tmp_path / "log",
            )
        waiting.join()
        assert os.read(reader, 100) == b"running\n"
        # The pipe ends when the last process that could write into it has ended.
        assert select.select([reader], [], [], PATIENCE_S)[0]
        assert os.read(reader, 100) == b""
    finally:
        os.close(reader)


def test_what_is_no_tree_or_revision_is_told(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no git tree"):
        Tree(tmp_path)
    with pytest.raises(UsageError, match="v9: no revision of"):
        Tree(tree).commit("v9")
    with pytest.raises(UsageError, match="--output=x: no revision of"):
        Tree(tree).commit("--output=x")


def test_whether_something_was_written(tmp_path: Path) -> None:
    old, folder = tmp_path / "old", tmp_path / "folder"
    old.touch()
    (folder / "deep").mkdir(parents=True)
    time.sleep(0.02)  # longer than a tick of the file system's clock
    moment = time.time_ns()
    assert not written_since([old, folder, tmp_path / "missing"], moment)
    # The file's clock is as far behind as the machine has stood still: wait until it has passed the moment.
    later = tmp_path / "later"
    later.touch()
    while later.stat().st_mtime_ns <= moment:
        later.touch()
    (folder / "deep" / "file").touch()
    os.utime(folder / "deep" / "file", (0, 0))  # as `cp -p` does
    assert written_since([old, folder], moment)
    assert not written_since([old], moment)
    assert not written_since([], moment)


def test_in_a_git_hook_the_users_index_is_not_touched(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook's environment names the repository that called it."""
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    repository = Tree(tree)
    repository.checkout(tmp_path / "out", repository.commit("main~3"))
    monkeypatch.undo()
    assert (tmp_path / "out" / "cost").read_text() != (tree / "cost").read_text()
    assert git(tree, "status", "--porcelain") == ""
    assert git(tree, "symbolic-ref", "--short", "HEAD") == "main"
