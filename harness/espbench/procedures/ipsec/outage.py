# SPDX-License-Identifier: Apache-2.0
"""Failover and reset: IPsec is interrupted while traffic flows, and the time until traffic flows again is measured.

That time is the one between arrivals, from the last frame before to the first after the outage (time-stamps of RFC
6201 4.1, ipsec-meth 14), minus the interval between two frames. With several tunnels it is the one from the first lost
frame to the last, when all tunnels are back; so no frame may be lost before the outage. The longer one of both
directions counts.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any

from espbench.measure.inputs.actions import Action
from espbench.measure.inputs.setup import Request
from espbench.plan.keys.ipsec_tests import Failover, Reset
from espbench.plan.resolved.cases import Case
from espbench.platforms.base import PowerSwitch, Side
from espbench.procedures.clauses import common
from espbench.procedures.ipsec.ipsec_common import (
    IpsecSeries,
    ike_of,
    never_back,
    outage_s,
    per_direction_load,
    record,
    restarted,
    stray_losses,
)
from espbench.procedures.procedure import Known, TrialMaker
from espbench.procedures.series import noted, times_unknown
from espbench.procedures.summaries import by_direction, quantity
from espbench.quantities import Key
from espbench.sentences import Code
from espbench.stacks.daemons.ike import IkeStack
from espbench.terms import Deviation, Reason, Statement, Trial

_SMALLEST = 64  # bytes: Ethernet's minimum frame size, with the FCS


class _OutageCase(IpsecSeries):
    """Makes `repeats` trials, all alike, each with daemons that were just started."""

    def __init__(self, case: Case, known: Known, trials: Sequence[Trial] = ()) -> None:
        assert isinstance(case.settings, Failover | Reset)
        self._asked = case.settings
        fps = case.settings.load.to_fps(case.mean_frame_size, known.limits.line_rate_bps)
        self.load_fps = per_direction_load(case, fps, known.limits)
        super().__init__(case, known, trials)

    @property
    def warm_up_fps(self) -> float:
        return self.load_fps

    def wanted(self) -> Request | None:
        if len(self.answers) == self._asked.repeats:
            return None
        return Request(self.load_fps, self._asked.trial, "measure")

    def made(self, request: Request, maker: TrialMaker) -> Trial:
        stack = ike_of(maker.setup)
        if why := self.impossible(maker):
            return record(self.case, request, len(self.trials), {}, reasons=[why])
        with restarted(stack, dpd_s=int(self._asked.dpd), **self.options):
            stack.initiate()
            trial = maker.trial(request, self.actions(maker, stack))
        nothing_lost = [] if trial.lost else [Reason.of(Code.NOT_MISSED)]
        stray = stray_losses(trial, self.case.stack.tunnels)
        return noted(trial, {}, [*nothing_lost, *times_unknown(trial, between_arrivals=True), *stray])

    def expected_trials(self) -> int:
        return self._asked.repeats

    def answer(self) -> dict[str, Any]:
        tunnels = self.case.stack.tunnels
        never = sum(never_back(trial, tunnels) for trial in self.answers)
        if never:
            return {
                "status": "UNRESOLVABLE",
                "words": Statement.of(
                    Code.NO_TRAFFIC_AGAIN,
                    never=never,
                    trials=len(self.answers),
                    after_s=self._asked.trial - self._asked.at,
                    event=self.event,
                ),
                "reasons": [Reason.of(Code.NOT_RECOVERED, key="trial")],
                "load_fps": self.load_fps,
            }
        of_way = partial(outage_s, tunnels=tunnels)
        times = [max(map(of_way, trial.per_direction.values())) for trial in self.answers]
        outage = quantity(self.key, times, digits=6)
        return {
            "status": "OK",
            "words": Statement.of(
                Code.TRAFFIC_THROUGH_ALL if tunnels > 1 else Code.TRAFFIC_AGAIN,
                **({"tunnels": tunnels} if tunnels > 1 else {}),
                s=outage.value,
                event=self.event,
                n=outage.n,
                least=outage.minimum,
                greatest=outage.maximum,
            ),
            "load_fps": self.load_fps,
            "quantities": [
                outage,
                *by_direction(self.key, self.answers, of_way, digits=6),
                quantity(Key.FRAMES_LOST, [float(t.lost) for t in self.answers], digits=1),
                *self._of_actions(),
            ],
        }

    def _of_actions(self) -> list[Any]:
        """Return the duration of each kind of action on the gateways."""
        done = [trial.measured["actions"] for trial in self.answers]
        return [
            quantity(
                Key.ACTION_TIME,
                [a["ended_s"] - a["began_s"] for all_ in done for a in all_ if a["name"] == name],
                part=name,
                action=name,
            )
            for name in dict.fromkeys(a["name"] for all_ in done for a in all_)
        ]

    def impossible(self, maker: TrialMaker) -> Reason | None:
        """Return why the test cannot be made on these gateways; None if it can."""
        return None

    @property
    @abstractmethod
    def key(self) -> Key:
        """The key of the quantity that the test measures."""

    @property
    @abstractmethod
    def event(self) -> Statement:
        """The event that caused the outage, for the answer."""

    @property
    @abstractmethod
    def options(self) -> dict[str, Any]:
        """The stack's options for this test."""

    @abstractmethod
    def actions(self, maker: TrialMaker, stack: IkeStack) -> list[Action]:
        """Return the actions that cause the outage while traffic flows."""


class FailoverCase(_OutageCase):
    """Stops Office's daemon and deletes its SAs; the standby is the same gateway's daemon, which is then started."""

    @property
    def key(self) -> Key:
        return Key.FAILOVER_TIME

    @property
    def event(self) -> Statement:
        assert isinstance(self._asked, Failover)
        return Statement.of(Code.IPSEC_DIED, dead_s=self._asked.dead)

    @property
    def options(self) -> dict[str, Any]:
        return {}

    def actions(self, maker: TrialMaker, stack: IkeStack) -> list[Action]:
        assert isinstance(self._asked, Failover)
        office = stack.daemons["office"]

        def die() -> dict[str, Any]:
            office.stop(suddenly=True)
            stack.flush_sas("office")
            return {}

        def take_over() -> dict[str, Any]:
            stack.start("office")
            return {}

        at, dead = self._asked.at, self._asked.dead
        return [Action("dying", at, die), Action("start of the standby", at + dead, take_over, lasts=True)]

    def deviations(self) -> list[Deviation]:
        return [Deviation.from_clause(Code.NO_REDUNDANT_PAIR, "ipsec-meth 14")]


class ResetCase(_OutageCase):
    """Resets a daemon, the SAs or a gateway. Home brings tunnels up again on traffic, so that only the gateways
    repair anything.
    """

    @property
    def _reset(self) -> Reset:
        assert isinstance(self._asked, Reset)
        return self._asked

    @property
    def key(self) -> Key:
        return Key.RESET_TIME

    @property
    def event(self) -> Statement:
        code = {"daemon": Code.DAEMON_STOPPED, "sa-flush": Code.SAS_DELETED, "power": Code.SWITCHED_OFF}
        return Statement.of(code[self._reset.what], gateway=self._reset.gateway.capitalize())

    @property
    def options(self) -> dict[str, Any]:
        return {"on_demand": True}

    def impossible(self, maker: TrialMaker) -> Reason | None:
        bed = maker.setup.bed
        if self._reset.what != "power":
            return None
        if not isinstance(bed, PowerSwitch):
            return Reason.of(Code.NO_POWER_SWITCH, platform=bed.platform)
        lack = bed.no_power_switch(self._reset.gateway)
        return Reason.of(Code.NO_POWER_SWITCH_OF_BOX, lack=lack) if lack else None

    def actions(self, maker: TrialMaker, stack: IkeStack) -> list[Action]:
        side: Side = self._reset.gateway
        daemon, at = stack.daemons[side], self._reset.at

        def restart() -> dict[str, Any]:
            daemon.stop(suddenly=False)
            stack.start(side)
            return {}

        def flush() -> dict[str, Any]:
            stack.flush_sas(side)
            return {}

        def power() -> dict[str, Any]:
            bed = maker.setup.bed
            facts = bed.power_cycle(side, lambda: stack.guard(side)) if isinstance(bed, PowerSwitch) else {}
            stack.revive(side)
            return facts

        act = {"daemon": restart, "sa-flush": flush, "power": power}[self._reset.what]
        name = {
            "daemon": "restart of the daemon",
            "sa-flush": "flush",
            "power": "power cycle, until its daemon runs",
        }
        what = self._reset.what
        return [Action(name[what], at, act, lasts=what != "sa-flush", breaks_links=what == "power")]

    def deviations(self) -> list[Deviation]:
        """Return the deviations from RFC 2544 26.6, which asks for the throughput of minimum-sized frames, and from
        RFC 6201.
        """
        done = [action for trial in self.answers for action in trial.measured.get("actions", [])]
        anew = any(action.get("brought_anew") for action in done)
        larger = self.case.mean_frame_size > _SMALLEST
        return [
            *([Deviation.from_clause(Code.BROUGHT_ANEW, "RFC 6201 4")] if anew else []),
            Deviation.from_clause(Code.LOAD_OF_PLAN, "26.6"),
            *([Deviation.from_clause(Code.NOT_SMALLEST, "26.6")] if larger else []),
            *common(self._reset, self.known.frame_sizes, self.trials),
        ]
