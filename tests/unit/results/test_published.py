# SPDX-License-Identifier: Apache-2.0
"""The figures of published documents are what the documents print, and nothing more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from espbench.catalogue.suites import suites
from espbench.errors import EspbenchError
from espbench.results.published import PublishedFigure, documents, published, read_document

PART_2 = "waters-crypto-performance-part-2"


def of(device: str, stack: str) -> list[PublishedFigure]:
    return [figure for figure in published() if (figure.device, figure.stack) == (device, stack)]


def test_the_saturated_mpc8548e_is_as_printed() -> None:
    """1057 Mbps at 38 % (NanoSec); OpenSwan's figure keeps the unit printed and gives no point."""
    (nanosec,) = of("MPC8548E", "nanosec")
    (openswan,) = of("MPC8548E", "openswan")
    assert (nanosec.frame_size, nanosec.mbps, nanosec.cpu_pct) == (1456, 1057, 38)
    assert openswan.throughput is not None
    assert (openswan.throughput.value, openswan.throughput.unit, openswan.cpu_pct) == (1057, "Gbps", 69)
    assert openswan.mbps is None


def test_the_printed_points_to_compare_with() -> None:
    """No curve was printed as numbers: these are all the throughputs there are, and no more."""
    points = {
        (figure.device, figure.stack, figure.frame_size, figure.direction): figure.mbps
        for figure in published()
        if figure.mbps is not None
    }
    assert points == {
        ("MPC8360EA", "plain", 64, "one-way"): 142,
        ("MPC8360EA", "plain", 64, "both-ways"): 114,
        ("MPC8379E", "openswan", "large", "both-ways"): 560,
        ("MPC8548E", "nanosec", 1456, "both-ways"): 1057,
    }


def test_no_entry_stands_twice() -> None:
    """One place in a document says one thing about one configuration."""
    figures = [
        (f.document, f.where, f.device, f.stack, f.suite, f.frame_size, f.direction) for f in published()
    ]
    ratios = [
        (r.document, r.where, r.device, r.of, r.to, r.frame_size)
        for document in documents().values()
        for r in document.ratios
    ]
    assert len(figures) == len(set(figures))
    assert len(ratios) == len(set(ratios))


def test_suites_are_the_ones_espbench_has() -> None:
    """A published point can then be laid over a measured one."""
    used = {figure.suite for figure in published()}
    used |= {ratio.suite for document in documents().values() for ratio in document.ratios}
    assert used - {None} <= set(suites())


def test_every_stack_of_a_figure_is_among_the_devices_stacks() -> None:
    """A figure of a stack its device never ran would be somebody else's."""
    for figure in published():
        device = documents()[figure.document].devices[figure.device]
        assert figure.stack in {"plain", *device.stacks}


def test_public_key_times_are_constant_cycle_counts() -> None:
    """One count of cycles explains a whole row within the rounding: a wrong digit would show."""
    rows = documents()["short-waters-public-key-performance"].times
    assert len(rows) == 6
    for row in rows:
        assert len(row.ms) == 8
        least = max(mhz * (ms - 0.005) for mhz, ms in row.ms.items())
        most = min(mhz * (ms + 0.005) for mhz, ms in row.ms.items())
        assert least <= most * (1 + 1e-9), row


def document(tmp_path: Path, **changes: Any) -> Path:
    """A document of one sound figure, with changes to it."""
    figure = {
        "where": "Table 1", "device": "BOX", "stack": "plain", "suite": None, "frame_size": 64,
        "throughput": {"value": 761.0, "unit": "Mbps"}, "cpu_pct": None, "qualifier": "exact",
        "loss_goal": None, "direction": "one-way", "reading": "printed",
    } | changes  # fmt: skip
    box = {
        "core": "e300", "core_mhz": 1, "sec": "none", "sec_mhz": 1, "os": "none", "stacks": [],
        "link_mbps": 1000,
    }  # fmt: skip
    source = {"title": "t", "authors": ["a"], "publisher": "p", "date": None, "copy": "c"}
    content = {"source": source, "remarks": [], "devices": {"BOX": box}, "figures": [figure]}
    path = tmp_path / "made-up.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def test_a_figure_knows_its_document(tmp_path: Path) -> None:
    """1 Gbps carries 761.9 Mbps of 64 B frames: 761 is possible."""
    (figure,) = read_document(document(tmp_path)).figures
    assert (figure.document, figure.mbps) == ("made-up", 761.0)


def test_a_doubt_is_needed_above_line_rate(tmp_path: Path) -> None:
    """The same figure is refused bare, and kept with a reason but not as a point."""
    above = {"throughput": {"value": 762.0, "unit": "Mbps"}}
    with pytest.raises(EspbenchError, match="above line rate"):
        read_document(document(tmp_path, **above))
    (figure,) = read_document(document(tmp_path, **above, doubt="printed so")).figures
    assert figure.mbps is None


def test_both_directions_carry_twice_as_much(tmp_path: Path) -> None:
    """An aggregate of both directions is held against both."""
    twice = {"throughput": {"value": 1523.0, "unit": "Mbps"}, "direction": "both-ways"}
    assert read_document(document(tmp_path, **twice)).figures
    with pytest.raises(EspbenchError, match="above line rate"):
        read_document(document(tmp_path, **twice | {"direction": "one-way"}))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"device": "OTHER"}, "not among the document's devices"),
        ({"throughput": None}, "a throughput, a cpu_pct or both"),
        ({"reading": "chart"}, "has a reading_error"),
        ({"reading_error": 5.0}, "has a reading_error"),
        ({"cpu_pct": 101.0}, "cpu_pct"),
        ({"cpu_pct": "38"}, "cpu_pct"),
        ({"frame_size": "biggish"}, "frame_size"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, changes: dict[str, Any], complaint: str) -> None:
    """Unknown keys, unknown devices and values out of range are refused with the file's name."""
    with pytest.raises(EspbenchError, match=complaint) as caught:
        read_document(document(tmp_path, **changes))
    assert "made-up.yaml" in str(caught.value)


def test_a_chart_reading_carries_its_error(tmp_path: Path) -> None:
    """± in the throughput's unit."""
    (figure,) = read_document(document(tmp_path, reading="chart", reading_error=15.0)).figures
    assert figure.reading_error == 15.0


def test_what_the_sources_contradict_is_written_down() -> None:
    """Every document says what it leaves open; the known misprint is among it."""
    assert all(document.remarks for document in documents().values())
    assert any("1057 Gbps" in remark.says for remark in documents()[PART_2].remarks)
