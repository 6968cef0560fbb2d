# SPDX-License-Identifier: Apache-2.0
"""Lines of `accelerator.jsonl` and `kernels.jsonl` that are not as they were written are never believed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.errors import EspbenchError
from espbench.results.durable import to_json
from espbench.results.records import read_records, read_what_is_whole, sealed
from espbench.terms import Record


class Figure(Record):
    """A record of a test."""

    name: str
    ns: int


FIGURES = [Figure(name="a\u2028", ns=1_000_000), Figure(name="b", ns=2), Figure(name="c", ns=3)]


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "figures.jsonl"
    assert read_records(path, Figure) == []
    path.write_text(sealed(FIGURES))
    assert read_records(path, Figure) == FIGURES
    assert to_json(read_records(path, Figure)[0]) == to_json(FIGURES[0]), (
        "nothing of the checksum is in a record"
    )


def test_files_of_before_there_were_checksums_are_read(tmp_path: Path) -> None:
    path = tmp_path / "figures.jsonl"
    path.write_text("".join(f"{to_json(figure)}\n" for figure in FIGURES))
    assert read_records(path, Figure) == FIGURES


@given(st.data())
def test_a_flipped_bit_never_changes_a_figure(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Its line is damaged, or still means the same; the others are read."""
    text = bytearray(sealed(FIGURES[: data.draw(st.integers(1, 3))]).encode())
    text[data.draw(st.integers(0, len(text) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path = tmp_path_factory.mktemp("flipped") / "figures.jsonl"
    path.write_bytes(text)
    records = read_what_is_whole(path, Figure)
    figures = {(figure.name, figure.ns) for figure in records.whole}
    assert figures <= {(figure.name, figure.ns) for figure in FIGURES}
    if records.damaged:
        with pytest.raises(EspbenchError, match=r"figures.jsonl:\d: damaged[\s\S]*espbench run --resume"):
            read_records(path, Figure)
