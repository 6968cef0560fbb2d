# SPDX-License-Identifier: Apache-2.0
"""Kernels as programs for a computer with a C library: what they print is compared, byte by byte."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from espbench.errors import EspbenchError
from espbench.npcrypt import hosted
from espbench.npcrypt.ciphers import KERNELS
from espbench.plan.keys.kernel_test import Level

SIZE = 256


def printed(name: str, level: Level, folder: Path) -> str:
    program = hosted.compiled(KERNELS[name], level, "O2", SIZE, folder)
    return subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout


@pytest.mark.needs("gcc")
@pytest.mark.parametrize(("name", "level"), [("aes", 0), ("rc4", 1), ("md5", 0)])
def test_every_known_answer_and_all_data_are_compared(name: str, level: Level, tmp_path: Path) -> None:
    """A cipher, one with a table of bytes, a hash; a wrong word anywhere is found, and named by its source."""
    kernel = KERNELS[name]
    text = printed(name, level, tmp_path)
    assert hosted.ns_per_call(kernel, text, SIZE, "here") > 0
    lines = text.splitlines()
    sources = [job.source for job in hosted.jobs(kernel, SIZE)]
    assert sources[-1] == "the data measured"
    for number, source in enumerate(sources):
        words = lines[number].split()
        words[0] = str(int(words[0]) ^ 1)
        wrong = [*lines[:number], " ".join(words), *lines[number + 1 :]]
        with pytest.raises(EspbenchError, match="computed something else") as error:
            hosted.ns_per_call(kernel, "\n".join(wrong), SIZE, "here")
        assert f"here, {source}" in str(error.value)


def test_a_program_that_printed_too_little_gives_no_figure() -> None:
    with pytest.raises(EspbenchError, match="AES: expected 3 lines of output and one of time, got 1"):
        hosted.ns_per_call(KERNELS["aes"], "12 20\n", SIZE, "here")


def test_bytes_of_a_table_keep_their_order_on_every_computer() -> None:
    """RC4's state in bytes is written as bytes, so a computer that stores a word's greatest byte first has it too."""
    header = hosted._header(KERNELS["rc4"], {"rc4_bytes"}, hosted.jobs(KERNELS["rc4"], SIZE))
    assert "extern uint8_t rc4_bytes[2048];" in header
    state = KERNELS["rc4"].tables(KERNELS["rc4"].key)["rc4_words"]
    assert f"(const uint8_t[]){{{state[0]}u, {state[1]}u, {state[2]}u, " in header
