# SPDX-License-Identifier: Apache-2.0
"""Executes a power cycle of a box: switches it off and on through labgrid, and waits until it is a router again.

The old connection is dropped at once, because its namespace on the box is gone; a new connection starts the agent
again. The gateway object stays the same (base.PowerSwitch).
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from espbench.errors import EspbenchError, Interrupted
from espbench.platforms.addressing import GatewayAddressing, configure
from espbench.platforms.base import NotBack
from espbench.platforms.remote.labgrid_board import Board
from espbench.platforms.remote.remote_gateway import (
    READY_S,
    Box,
    RemoteGateway,
    connect,
    console_log_of,
    survey,
)
from espbench.this_machine import ending
from espbench.this_machine.registry import Entry, Registry

# The time between two attempts to reach a box that boots, and between two notes that it does not answer yet, s.
AGAIN_S, NOTE_S = 1.0, 30.0
# A box that still answers with its old boot id this long after it was switched on was never off, s.
STILL_ON_S = 20.0
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


@dataclass
class PoweredBox:
    """A box whose power labgrid switches; entries are those of its connection in the registry."""

    registry: Registry
    logs: Path
    box: Box
    board: Board
    gateway: RemoteGateway
    addressing: GatewayAddressing
    entries: Sequence[Entry]
    on_note: Callable[[str], None]

    def cycle(self, guard: Callable[[], None], wait_for_links: Callable[[], None]) -> dict[str, Any]:
        """Implement base.PowerSwitch.power_cycle; the calling thread must live as long as the test bed."""
        boot_id, macs = self._identity()
        used_ns = self.gateway.cpu_ns() or 0
        began = time.monotonic()
        with self._journal() as dark:
            self._switch_off(dark)
            off = time.monotonic()
            self.gateway.abandon()
            self.registry.undo(self.entries)
            time.sleep(max(0.0, off + self.board.delay_s - time.monotonic()))
            try:
                self.board.on()
            except EspbenchError as error:
                raise NotBack(f"{error}; it is off: switch it on by hand") from error
            dark.clear()
        on = time.monotonic()
        self._note(f"switched off and on; it may take {self.board.target.back_within_s:g} s until it is back")
        booted = self._wait_until_back(boot_id, macs, on)
        self._note(f"back {time.monotonic() - on:.0f} s after it was switched on")
        self.gateway.go_on_with(booted, used_ns)
        guard()
        configure(self.gateway, self.addressing)
        wait_for_links()
        seconds = {"off_s": round(off - began, 6), "boot_s": round(time.monotonic() - off, 6)}
        return {**seconds, "brought_anew": True}

    @contextlib.contextmanager
    def _journal(self) -> Iterator[threading.Event]:
        """Ensure that the end of the run, or `espbench clean`, switches the box on again while the event is set."""
        dark, target = threading.Event(), self.board.target

        def switch_on() -> None:
            if dark.is_set():
                self.board.on()

        entry = self.registry.add(
            "power",
            f"{self.gateway.side} ({self.box.login})",
            switch_on,
            config=str(target.config.absolute()),
            target=target.name,
        )
        yield dark
        self.registry.undo([entry])

    def _switch_off(self, dark: threading.Event) -> None:
        dark.set()
        try:
            self.board.off()
        except EspbenchError:
            with contextlib.suppress(EspbenchError):  # a switch that fails has probably changed nothing
                self.board.on()
            dark.clear()
            raise

    def _wait_until_back(self, boot_id: str, macs: list[str], on: float) -> RemoteGateway:
        """Connect repeatedly until the agent of the booted box answers; raise NotBack when the time is over."""
        side, limit_s = self.gateway.side, self.board.target.back_within_s
        noted = on
        why = "it was not asked"
        while (passed := time.monotonic() - on) < limit_s:
            if ending.heard():
                raise Interrupted(f"{side}: interrupted while it booted; it is switched on")
            if time.monotonic() - noted > NOTE_S:
                noted = time.monotonic()
                self._note(f"not back after {passed:.0f} s: {why}")
            try:
                box = survey(side, self.box, max(1.0, min(READY_S, limit_s - passed)))
                if box["boot"] != boot_id:
                    self._same_ports(macs, box["macs"])
                    return self._connect()
                why = "it still answers with the boot id it had"
                if passed > STILL_ON_S:
                    break
            except NotBack:
                raise
            except EspbenchError as error:
                why = str(error)
            time.sleep(AGAIN_S)
        if passed < limit_s:
            raise NotBack(
                f"{side} was switched off and on, and was never off: {why}; check that {self.board.target} is the "
                "one that switches it"
            )
        seen = f" and {console_log_of(self.logs, side)}" if self.board.has_console else ""
        raise NotBack(
            f"{side} was switched off and on, and was not back within {limit_s:g} s: {why}; look at the box{seen}, or "
            "give it more time (back_within in the DUT profile)"
        )

    def _connect(self) -> RemoteGateway:
        already = len(self.registry.entries)
        try:
            booted = connect(self.registry, self.gateway.side, self.box, self.logs)()
        except EspbenchError:
            with contextlib.suppress(EspbenchError):  # the next attempt restores what this one could not
                self.registry.undo(self.registry.entries[already:])
            raise
        self.entries = self.registry.entries[already:]
        return booted

    def _same_ports(self, before: list[str], now: list[str]) -> None:
        if before != now:
            raise NotBack(
                f"{self.gateway.side} came back with other MAC addresses ({', '.join(now)} in place of "
                f"{', '.join(before)}), and the tester's frames carry the old ones; give its ports fixed ones"
            )

    def _identity(self) -> tuple[str, list[str]]:
        """Return the id of this boot, and the MAC addresses of the box's two ports."""
        addresses = [f"/sys/class/net/{port}/address" for port in (self.gateway.lan, self.gateway.wan)]
        texts = self.gateway.read([_BOOT_ID, *addresses])
        return (texts[_BOOT_ID] or "").strip(), [(texts[path] or "").strip() for path in addresses]

    def _note(self, text: str) -> None:
        self.gateway.note(text)
        self.on_note(f"{self.gateway.side}: {text}")
