# SPDX-License-Identifier: Apache-2.0
"""Simulates a DUT that is one queue, by arithmetic, and makes its trials' records."""

from __future__ import annotations

from dataclasses import dataclass

from espbench.measure.inputs.setup import Request
from espbench.terms import DirectionReading, Latency, Trial


@dataclass(frozen=True)
class QueueDut:
    """A DUT that forwards `rate_fps` and stores `buffer` frames, in one direction.

    recovers_after_s: the time after the end of an overload until it loses no frames any more.
    """

    rate_fps: float
    buffer: int = 0
    latency_us: float = 100.0
    recovers_after_s: float = 0.0

    def longest_burst(self, load_fps: float) -> float:
        """Return the number of frames at this load until the buffer is full."""
        return self.buffer / (1 - self.rate_fps / load_fps)

    def trial(self, request: Request, case: str, sequence: int) -> Trial:
        """Return the record of a VALID trial."""
        shape = request.shape
        sent = shape.burst_frames or round(request.load_fps * request.duration_s)
        last_lost: float | None = None
        backlog = 0
        if shape.steps:
            ((at_s, share),) = shape.steps
            sent = round(request.load_fps * (at_s + share * (request.duration_s - at_s)))
            excess = max(0.0, request.load_fps - self.rate_fps)
            lost = round(excess * at_s + request.load_fps * share * self.recovers_after_s) if excess else 0
            last_lost = at_s + self.recovers_after_s if lost else None
        elif shape.burst_frames:
            lost = max(0, int(sent - self.longest_burst(request.load_fps)))
        else:
            forwarded = min(request.load_fps, self.rate_fps) * request.duration_s + self.buffer
            lost = max(0, sent - round(forwarded))
            backlog = self.buffer if lost else 0
        reading = DirectionReading(
            intended_fps=request.load_fps, offered_fps=request.load_fps, tx_frames=sent, rx_frames=sent - lost,
            lost=lost, duplicated=0, reordered=0, corrupted=0, last_lost_s=last_lost, backlog_frames=backlog,
            tagged_us=self.latency_us + sequence if shape.tag_at_s is not None else None,
            departure_fps=request.load_fps,
        )  # fmt: skip
        return Trial(
            case=case, sequence=sequence, phase=request.phase, attempt=request.attempt,
            intended_fps=request.load_fps, offered_fps=request.load_fps, duration_s=request.duration_s,
            intended_duration_s=request.duration_s, tx_frames=sent, rx_frames=sent - lost, lost=lost,
            duplicated=0, reordered=0, corrupted=0, frame_loss_ratio=lost / sent, validity="VALID",
            latency_us=Latency(min=self.latency_us, mean=self.latency_us, p50=self.latency_us, max=self.latency_us),
            per_direction={"west-east": reading},
        )  # fmt: skip
