# SPDX-License-Identifier: Apache-2.0
"""The bus test: the bytes that the devices of gateway Home move over its memory's bus, for each frame that it
receives.

The emulated devices count them. Beside them is the count of the first article's section "Bus Bandwidth": frames in
and out, data and keys to the engine and back. The CPU's own part is an assumed rate of cache misses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from espbench.catalogue import bus_bytes
from espbench.measure.inputs.setup import Request
from espbench.plan.keys.board_tests import Bus
from espbench.plan.resolved.cases import Case
from espbench.procedures.at_throughput import AtThroughputSeries, load_note
from espbench.procedures.clauses import common
from espbench.procedures.procedure import Known
from espbench.quantities import Key, figure
from espbench.sentences import Code
from espbench.terms import CACHE_LINE_BYTES, Deviation, Quantity, Reason, Statement, Trial

# The bytes of a request to the engine: its descriptor is fetched, and its header is written back.
_DESCRIPTOR_BYTES = 64 + 8
_SUITES = ("3des-sha1", "aes128-sha1", "aes256-sha256")  # the article's account knows their keys


class BusCase(AtThroughputSeries):
    """Makes one trial."""

    def __init__(self, case: Case, known: Known, trials: Sequence[Trial] = ()) -> None:
        assert isinstance(case.settings, Bus)
        self.settings = case.settings
        super().__init__(case, case.settings, known, trials)

    def wanted(self) -> Request | None:
        if self.answers or self.load_fps is None:
            return None
        return Request(self.load_fps, self.settings.trial, "measure", bus=True)

    def expected_trials(self) -> int:
        return 1

    def answer(self) -> dict[str, Any]:
        """Return the bytes for a frame, or no figure if more frames were lost than the loss goal allows.

        A lost frame crosses the bus only in part, or not at all. So it would lower the bytes for a frame sent.
        """
        (trial,) = self.answers
        if not trial.loses_within(self.settings.loss_goal):
            why = Reason.of(Code.BUS_OF_LOST, lost=trial.lost, sent=trial.tx_frames, fps=trial.offered_fps)
            return {
                "status": "INVALID",
                "words": Statement.of(Code.NOT_MEASURED, why=why),
                "reasons": [why],
                "load_fps": trial.offered_fps,
                "warnings": load_note(self.known, self.settings),
            }
        quantities = _quantities(trial, self.settings.misses_per_us)
        by_account = self._by_account()
        counted = quantities[1].value
        if by_account is not None and counted is not None:
            quantities += [
                figure(Key.BUS_BY_ACCOUNT, by_account),
                figure(Key.BUS_OF_ACCOUNT, round(counted / by_account, 4)),
            ]
        return {
            "status": "OK",
            "words": Statement.of(
                Code.BUS_MOVED, bytes=quantities[0].value, fps=trial.offered_fps, counted=counted
            ),
            "load_fps": trial.offered_fps,
            "quantities": quantities,
            "warnings": load_note(self.known, self.settings),
        }

    def _by_account(self) -> float | None:
        """Return the article's bytes for a frame of one size; None if the article has no account of this kind of
        set-up.
        """
        size, suite = self.case.frame_size, self.case.suite
        if not isinstance(size, int):
            return None
        if self.case.stack.kind == "plain":
            return bus_bytes.plain(size).total
        return bus_bytes.encrypted(size, suite).total if suite in _SUITES else None

    def deviations(self) -> list[Deviation]:
        return common(self.settings, self.known.frame_sizes, self.trials)


def _quantities(trial: Trial, misses_per_us: float) -> list[Quantity]:
    """Return the bytes in total, those that the article counts, and those of each device; each for a frame sent to
    the pair.
    """
    moved: dict[str, int] = trial.measured["bus"]["home"]

    def each(*keys: str) -> float:
        return sum(moved[key] for key in keys) / trial.tx_frames

    frames = each("port_frame_read", "port_frame_written")
    descriptors = each("port_read", "port_written") - frames
    engine = each("sec_read", "sec_written")
    requests = each("sec_descriptors") * _DESCRIPTOR_BYTES
    cpu_us = trial.gateways["home"].cpu_us_per_frame
    cpu = 0.0 if cpu_us is None else cpu_us * misses_per_us * CACHE_LINE_BYTES
    total = frames + descriptors + engine + cpu
    return [
        figure(Key.BUS_TOTAL, round(total, 2)),
        figure(Key.BUS_COUNTED, round(frames + engine - requests, 2)),
        figure(Key.BUS_FRAMES, round(frames, 2)),
        figure(Key.BUS_ENGINE, round(engine - requests, 2)),
        figure(Key.BUS_DESCRIPTORS, round(descriptors + requests, 2)),
        figure(Key.BUS_CPU, round(cpu, 2)),
        figure(Key.BUS_RATE, round(total * trial.offered_fps / 1e6, 3)),
    ]
