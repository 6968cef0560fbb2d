# SPDX-License-Identifier: Apache-2.0
"""Frame loss during rekeys of phase 2 (ipsec-meth 11.5): the ESP SAs expire several times in a trial at the
throughput.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from espbench.measure.inputs.setup import Request, Setup
from espbench.plan.keys.ipsec_tests import RekeyLoss
from espbench.plan.resolved.cases import Case
from espbench.plan.resolved.frame_sizes import FRAMING_BYTES
from espbench.platforms.gateway_time import now_s
from espbench.procedures.at_throughput import load_note, load_of
from espbench.procedures.clauses import common, shorter, shortest
from espbench.procedures.ipsec.ipsec_common import IpsecSeries, ike_of, restarted, upset, upset_late_s
from espbench.procedures.procedure import Known, TrialMaker
from espbench.procedures.series import noted
from espbench.quantities import Key, figure
from espbench.sentences import Code
from espbench.stacks.daemons.daemon import hard_bytes
from espbench.stacks.daemons.sa_events import Span, spans
from espbench.terms import Deviation, Reason, Statement, Trial

_TRIAL_S = 60.0


class RekeyLossCase(IpsecSeries):
    """Makes one trial, with the lifetime that the plan sets."""

    def __init__(self, case: Case, known: Known, trials: Sequence[Trial] = ()) -> None:
        assert isinstance(case.settings, RekeyLoss)
        self.settings = case.settings
        self._load, self._no_load = load_of(case, known, case.settings)
        super().__init__(case, known, trials)

    def unfit(self) -> Reason | None:
        return self._no_load

    def wanted(self) -> Request | None:
        return None if self.answers else Request(self._load or 0.0, self.settings.trial, "measure")

    def made(self, request: Request, maker: TrialMaker) -> Trial:
        stack = ike_of(maker.setup)
        home = stack.daemons["home"]
        s = self.settings
        with restarted(stack, lifetime_s=s.lifetime_s, lifetime_bytes=s.lifetime_bytes):
            stack.initiate()
            clocks = _Clocks(maker.setup)
            mark = home.mark()
            trial = maker.trial(request, upset(clocks.note_beginning))
            rekeys = clocks.while_sending(spans(home.events(mark), 2, "rekeyed"), trial)
        least = stack.options.tunnels * max(1, self._lifetimes(trial, stack.options.tunnels) - 1)
        wrong = []
        if len(rekeys) < least:
            wrong = [Reason.of(Code.FEW_REKEYS, seen=len(rekeys), least=least, trial_s=self.settings.trial)]
        return noted(
            trial, {"rekeys": len(rekeys), "rekey_ms": [round(1e3 * r.seconds, 3) for r in rekeys]}, wrong
        )

    def _lifetimes(self, trial: Trial, tunnels: int) -> int:
        """Return the least number of lifetimes of an SA that end in the trial."""
        s = self.settings
        if not s.lifetime_bytes:
            return int(s.trial // s.lifetime_s)
        # The SA of the direction with more frames expires first; it still carries frames while it is
        # replaced.
        frames = max(direction.rx_frames for direction in trial.per_direction.values()) / tunnels
        return int(frames * (self.case.mean_frame_size - FRAMING_BYTES) // hard_bytes(s.lifetime_bytes))

    def expected_trials(self) -> int:
        return 1

    def answer(self) -> dict[str, Any]:
        (trial,) = self.answers
        rekeys, lost = trial.measured["rekeys"], trial.lost
        each = Statement.of(Code.LOST_EACH, frames=lost / rekeys) if lost else None
        return {
            "status": "OK",
            "words": Statement.of(
                Code.LOST_WHILE_REKEYED, rekeys=rekeys, lost=lost, sent=trial.tx_frames, each=each
            ),
            "load_fps": self._load,
            "warnings": load_note(self.known, self.settings),
            "quantities": [
                figure(Key.LOSS_RATIO, round(100 * trial.frame_loss_ratio, 6)),
                figure(Key.FRAMES_LOST, float(lost)),
                figure(Key.REKEYS, float(rekeys)),
                figure(Key.SA_LIFETIME_BYTES, float(self.settings.lifetime_bytes))
                if self.settings.lifetime_bytes
                else figure(Key.SA_LIFETIME, self.settings.lifetime_s),
            ],
        }

    def deviations(self) -> list[Deviation]:
        s = self.settings
        return [
            *shorter(Code.SHORT_TRIAL, "24", shortest(self.answers, s.trial), _TRIAL_S),
            *([Deviation.from_clause(Code.LOAD_OF_PLAN, "ipsec-meth 11.5")] if s.load is not None else []),
            *common(s, self.known.frame_sizes, self.trials),
        ]


class _Clocks:
    """Relates the times in Home's log to the sending, so that rekeys in the waits around it are not counted.

    The log need not have the time that espbench reads. Both are compared when the tunnels have just come up, which the
    daemon logged a moment before (half a second at most). So Home has no work with it while it forwards frames.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        read_s = self._now_s()
        events = ike_of(setup).daemons["home"].events()
        self._log_ahead_s = max((event.at_s for event in events), default=read_s) - read_s
        self._noted_s: float | None = None  # in the time of the log

    def _now_s(self) -> float:
        """Return the time, s, without a request to Home."""
        clock = self._setup.trial_clock
        return now_s(self._setup.bed.gateways["home"]) if clock is None else clock.now_ns() / 1e9

    def note_beginning(self) -> dict[str, Any]:
        """Note the time; it is the action of `upset`."""
        self._noted_s = self._now_s() + self._log_ahead_s
        return {}

    def while_sending(self, rekeys: Sequence[Span], trial: Trial) -> list[Span]:
        """Return the rekeys that were in progress while the trial's frames were sent; none without a beginning."""
        if self._noted_s is None:
            return []
        first_s = self._noted_s - upset_late_s(trial)
        return [r for r in rekeys if r.done_s >= first_s and r.begun_s <= first_s + trial.duration_s]
