# SPDX-License-Identifier: Apache-2.0
"""The test under attack (ipsec-meth 15): the forwarding rate at the throughput while Home is attacked, rate by rate.

The attacker's frames enter by Home's LAN port, together with the traffic. Linux checks address, port and SPI, not
the interface by which a packet enters, and the tester has no port on the middle link.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from espbench.generators.base import Noise
from espbench.measure.inputs.actions import Action, performing
from espbench.measure.inputs.setup import Request, Setup
from espbench.measure.inputs.traffic import Traffic
from espbench.plan.keys.ipsec_tests import Attack
from espbench.plan.resolved.cases import Case
from espbench.procedures.at_throughput import load_note, load_of
from espbench.procedures.clauses import common, shorter, shortest
from espbench.procedures.ipsec.ipsec_common import IpsecSeries, ike_of, restarted
from espbench.procedures.procedure import Known, TrialMaker
from espbench.procedures.series import noted
from espbench.procedures.summaries import (
    by_direction,
    forwarding_fps,
    forwarding_of_fps,
    loss_by_direction,
    loss_pct,
)
from espbench.quantities import Key, figure, key_of_way
from espbench.sentences import Code
from espbench.stacks.base import INBOUND
from espbench.stacks.daemons import attack_packets
from espbench.stacks.daemons.ike import IkeStack
from espbench.stacks.policies import dump_sas
from espbench.stacks.xfrm import Xfrm
from espbench.terms import Deviation, Reason, Remark, Statement, Trial

_TRIAL_S = 60.0
_PACKETS = 1024
_NOISE_ID = 100  # above the ids of the streams, which count from 0
_HEARD, _HEARING_S, _HEARD_FPS = 256, 3.0, 200.0
# This is about the size of ESP's own fields in a packet: initialization vector, padding, trailer, ICV.
_OVERHEAD = 32
_LONGEST = 1424  # a packet of 1,500 B has room for this many bytes
_NAMES = {"ike-flood": Code.IKE_FLOOD, "bad-icv": Code.BAD_ICV, "replay": Code.REPLAY}
# These counters of Home's kernel count the attacker's packets that it refused.
_ERRORS = {"bad-icv": "XfrmInStateProtoError", "replay": "XfrmInStateSeqError"}


class AttackCase(IpsecSeries):
    """Makes one trial without an attack, then one at each attack rate, from the slowest to the fastest."""

    def __init__(self, case: Case, known: Known, trials: Sequence[Trial] = ()) -> None:
        assert isinstance(case.settings, Attack)
        self.settings = case.settings
        self._load, self._no_load = load_of(case, known, case.settings)
        rates = (
            rate.to_fps(case.mean_frame_size, known.limits.line_rate_bps) for rate in case.settings.rates
        )
        self._rates = [0.0, *sorted(rates)]
        super().__init__(case, known, trials)

    def unfit(self) -> Reason | None:
        stack = self.case.stack
        if stack.in_udp and self.settings.kind != "ike-flood":
            return Reason.of(Code.UDP_NOT_FORGED)
        if self.settings.kind == "replay" and stack.replay_window == 0:
            return Reason.of(Code.NO_REPLAY_WINDOW)
        return self._no_load

    def wanted(self) -> Request | None:
        if len(self.answers) == len(self._rates):
            return None
        return Request(self._load or 0.0, self.settings.trial, "measure")

    def made(self, request: Request, maker: TrialMaker) -> Trial:
        # Earlier versions measured the rates in the order of the plan, and such a run may be resumed.
        done = [trial.measured.get("attack_fps") for trial in self.answers]
        rate = next((rate for rate in self._rates if rate not in done), self._rates[-1])
        if self.settings.kind == "ike-flood":
            stack = ike_of(maker.setup)
            with restarted(stack, open_to_all=True):
                stack.initiate()
                return self._attacked(request, maker, rate)
        return self._attacked(request, maker, rate)

    def _attacked(self, request: Request, maker: TrialMaker, rate: float) -> Trial:
        packets = self._packets(maker.setup) if rate else []
        if rate:
            # Other packets repeat as they are: forged ESP is no cheaper to refuse when it comes again.
            renewed = self.settings.kind == "ike-flood"
            spi_at = attack_packets.initiator_spi_at(packets[0]) if renewed else None
            noise = _noise(maker.setup, packets, rate, spi_at)
            request = replace(request, shape=replace(request.shape, noise=(noise,)))
        trial = maker.trial(request, ())
        beside = self._beside_sas(maker.setup, packets) if rate else []
        return noted(trial, {"attack_fps": rate}, beside)

    def _beside_sas(self, setup: Setup, packets: Sequence[bytes]) -> list[Reason]:
        """Return a reason if the attack's ESP is of SAs that Home does not have any more: it costs Home less.

        Another check finds SAs that are replaced in the trial itself, so those at its end are those at its begin.
        """
        if self.settings.kind == "ike-flood" or setup.stack is None:
            return []
        hit = {attack_packets.spi_of(packet) + INBOUND for packet in packets}
        gone = hit - setup.stack.counters("home").spis
        return [Reason.of(Code.ATTACK_BESIDE_SAS, gone=len(gone))] if gone else []

    def _packets(self, setup: Setup) -> list[bytes]:
        stack = setup.stack
        home = setup.bed.gateways["home"]
        if self.settings.kind == "ike-flood":
            assert isinstance(stack, IkeStack)
            tunnel = stack.tunnel
            return attack_packets.ike_flood(tunnel.west, tunnel.home, stack.options.ike, _PACKETS)
        if self.settings.kind == "replay":
            return self._replays(setup)
        assert isinstance(stack, IkeStack | Xfrm)
        inbound = [sa for sa in dump_sas(home) if sa.destination == stack.tunnel.home]
        size = min(int(self.case.mean_frame_size) - 18 + _OVERHEAD, _LONGEST)
        each = max(1, _PACKETS // len(inbound))
        return [
            packet
            for sa in inbound
            for packet in attack_packets.forged_esp(sa.source, sa.destination, sa.spi, size - size % 16, each)
        ]

    def _replays(self, setup: Setup) -> list[bytes]:
        """Return ESP packets captured at Home while frames flowed. Later packets have higher sequence numbers, so
        that these are old.
        """
        traffic = Traffic(
            frames=(self.case.sizes[0][:2],), ip_version=self.case.ip_version, direction="both-ways"
        )
        heard: list[bytes] = []

        def listen() -> dict[str, Any]:
            heard.extend(attack_packets.heard_esp(setup.bed.gateways["home"], _HEARD, _HEARING_S))
            return {}

        with performing([Action("hearing ESP", 0.0, listen)], setup.trial_clock):
            setup.generator.offer(setup.streams(traffic, 2 * _HEARD_FPS), _HEARING_S + 0.5, 0.2)
        return heard

    def expected_trials(self) -> int:
        return len(self._rates)

    def answer(self) -> dict[str, Any]:
        trials = sorted(self.answers, key=lambda trial: float(trial.measured.get("attack_fps", 0.0)))
        rows = [self._row(trial) for trial in trials]
        free, worst, attacked = rows[0], rows[-1], trials[-1:]
        harmless = [*takewhile(lambda trial: trial.meets(self.settings.loss_goal), trials)]
        fastest_fps = rows[len(harmless) - 1]["attack_fps"] if harmless else None
        kept = worst["forwarded_fps"] / free["forwarded_fps"] * 100 if free["forwarded_fps"] else 0.0
        what = Statement.of(_NAMES[self.settings.kind])
        quantities = [
            figure(Key.KEPT_UNDER_ATTACK, round(kept, 3)),
            figure(Key.FORWARDING_UNDER_ATTACK, worst["forwarded_fps"]),
            figure(Key.FORWARDING_WITHOUT_ATTACK, free["forwarded_fps"]),
            figure(Key.HARMLESS_ATTACK, fastest_fps, n=int(bool(harmless))),
            *by_direction(
                Key.FORWARDING_UNDER_ATTACK, attacked, lambda d: round(forwarding_of_fps(attacked[0], d), 1)
            ),
            *by_direction(Key.LOSS_UNDER_ATTACK, attacked, loss_pct, digits=6),
        ]
        cpu = [row["cpu_home_pct"] for row in (free, worst)]
        cpu_change = None if None in cpu else Statement.of(Code.CPU_GOES, before_pct=cpu[0], pct=cpu[1])
        for side in ("home", "office"):
            quantities += [
                figure(key, row[f"cpu_{side}_pct"], part=side, side=side)
                for key, row in ((Key.CPU_WITHOUT_ATTACK, free), (Key.CPU_UNDER_ATTACK, worst))
            ]
        return {
            "status": "OK",
            "words": Statement.of(
                Code.UNDER_ATTACK,
                fps=worst["attack_fps"],
                what=what,
                kept_pct=kept,
                loss_pct=worst["loss_pct"],
                cpu=cpu_change,
            ),
            "load_fps": self._load,
            "warnings": [
                *load_note(self.known, self.settings),
                *([] if harmless else [Remark.of(Code.LOST_WITHOUT_ATTACK, goal=self.settings.loss_goal)]),
            ],
            "quantities": quantities,
            "curve": rows,
        }

    def _row(self, trial: Trial) -> dict[str, Any]:
        """Return the row of one attack rate; attack_fps is the rate that was really sent."""
        sent = trial.measured.get("noise", [])
        home, office = (trial.gateways.get(side) for side in ("home", "office"))
        row: dict[str, Any] = {
            "attack_fps": round(sum(n["tx_frames"] for n in sent) / trial.duration_s, 1) if sent else 0.0,
            "forwarded_fps": round(forwarding_fps(trial), 1) if trial.duration_s else 0.0,
            "loss_pct": round(100 * trial.frame_loss_ratio, 6),
            **{key_of_way("loss_pct", way): loss for way, loss in loss_by_direction(trial).items()},
            "cpu_home_pct": home.cpu_pct if home else None,
            "cpu_office_pct": office.cpu_pct if office else None,
        }
        if (error := _ERRORS.get(self.settings.kind)) and home:
            row["refused by home"] = home.xfrm_errors.get(error, 0)
        return row

    def deviations(self) -> list[Deviation]:
        s = self.settings
        return [
            *shorter(Code.SHORT_TRIALS, "24", shortest(self.answers, s.trial), _TRIAL_S),
            *([Deviation.from_clause(Code.LOAD_OF_PLAN, "ipsec-meth 15")] if s.load is not None else []),
            *common(s, self.known.frame_sizes, self.trials),
        ]


def _noise(setup: Setup, packets: Sequence[bytes], rate: float, counter_at: int | None) -> Noise:
    """Return the attack as noise that the west port sends to Home; counter_at: as in Noise."""
    return Noise(
        id=_NOISE_ID,
        from_="west",
        rate_fps=rate,
        src_mac=setup.bed.ports["west"].mac,
        dst_mac=setup.next_hops["west"],
        packets=[base64.b64encode(packet).decode() for packet in packets],
        counter_at=counter_at,
    )
