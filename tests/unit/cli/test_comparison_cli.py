# SPDX-License-Identifier: Apache-2.0
"""`espbench compare` as a user runs it: what it writes, prints, and how it refuses."""

from __future__ import annotations

import json
from pathlib import Path

from support.command_line import in_process
from support.synthetic import run as synthetic_run

SHAPE = synthetic_run.Shape(sizes=(64, 512), suites=("aes128-sha1", "3des-sha1"), repeats=3)


def test_compare_writes_the_documents_and_prints_verdicts_words_and_at_last_the_page(tmp_path: Path) -> None:
    run = synthetic_run.build(tmp_path, SHAPE)
    asked = ["--by", "suite", "--reference", "3des-sha1", "--out", str(tmp_path / "out")]
    done = in_process("compare", run.path, *asked)
    assert done.returncode == 0, done.stderr
    page = Path(done.stdout.strip().splitlines()[-1])
    assert page.name == "comparison.html"
    assert page.parent.parent == tmp_path / "out"
    assert page.parent.name.endswith("-compare-suite")
    assert {"comparison.html", "comparison.md", "comparison.json"} <= {p.name for p in page.parent.iterdir()}
    document = json.loads((page.parent / "comparison.json").read_text())
    assert [arm["name"] for arm in document["arms"]] == ["3des-sha1", "aes128-sha1"]
    assert "aes128-sha1 faster" in done.stdout
    assert "aes128-sha1 is faster than 3des-sha1 at every size" in done.stdout
    assert "\x1b" not in done.stdout, "no colours in a pipe"


def test_compare_refuses_in_one_message_with_exit_code_2(tmp_path: Path) -> None:
    run = synthetic_run.build(tmp_path, SHAPE)
    done = in_process("compare", run.path, "--by", "kernel", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "nothing to compare by kernel" in done.stderr
    assert "--by suite" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
    assert in_process("compare", tmp_path).returncode == 2
    assert in_process("compare").returncode == 2
