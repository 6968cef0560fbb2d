# SPDX-License-Identifier: Apache-2.0
"""strongSwan's charon on one gateway, controlled over vici by strongSwan's swanctl in the same gateway."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from espbench.errors import EspbenchError
from espbench.platforms.base import Gateway
from espbench.platforms.gateway_time import now_s, pause
from espbench.stacks.base import SaCounters
from espbench.stacks.daemons import layers, processes
from espbench.stacks.daemons.builds import Build
from espbench.stacks.daemons.daemon import End, IkeReading, NegotiationFailed, ended_in_time, final_words
from espbench.stacks.daemons.sa_events import Phase, SaEvent, log_lines, log_size
from espbench.stacks.strongswan import strongswan_events, vici_text
from espbench.stacks.strongswan import strongswan_status as status
from espbench.stacks.strongswan.strongswan_config import (
    CONNECTION,
    FOLDER,
    LOG,
    SOCKET,
    child_name,
    connection_name,
    strongswan_conf,
    swanctl_conf,
)

START_S = 45.0
_POLL_S = 0.1


class StrongSwan:
    """A charon with the tunnels of one end; user_space: its plugin kernel-libipsec does ESP over a TUN device."""

    name = "strongSwan"

    def __init__(self, gateway: Gateway, end: End, build: Build, *, user_space: bool = False) -> None:
        self._gateway = gateway
        self.end = end
        self._user_space = user_space
        self._build = build

    def install(self) -> None:
        """Lay the build's files over the gateway's root (`layers.lay`)."""
        layers.lay(self._gateway, self._build)

    def start(self) -> None:
        """Write the configuration and start charon. Raise NegotiationFailed if it does not start."""
        self._write_configuration()
        if self._user_space:
            # A guest may need to load its module. For the host's kernel, `beds.require` has checked this before.
            self._gateway.run(["sh", "-c", "[ -e /dev/net/tun ] || modprobe tun"])
        self._start_charon()

    def load(self) -> None:
        """Load the connections and secrets. Raise NegotiationFailed, which quotes swanctl, if that fails."""
        done = self._gateway.run(self._command("--load-all", "--noprompt"))
        if done.rc:
            why = status.complaint(done.err + done.out)
            raise NegotiationFailed(
                f"{self._gateway.side}: charon refuses its configuration: {why}", final=True
            )

    def initiate(self, timeout_s: float) -> None:
        """Bring every tunnel up; raise NegotiationFailed if they are not all up within timeout_s."""
        deadline = now_s(self._gateway) + timeout_s
        self.bring_up([0], timeout_s)
        wanted = len(self.end.tunnels)
        if wanted == 1:
            return
        # The other tunnels come up when charon loads the connection again with children that start by themselves.
        # This is much faster than a call for each tunnel.
        self._gateway.write(f"{FOLDER}/swanctl/swanctl.conf", swanctl_conf(self.end, start=True))
        self._run("--load-conns")
        while (up := self._tunnels_up()) < wanted:
            if now_s(self._gateway) > deadline:
                why = self.reason() or "no reason given"
                raise NegotiationFailed(
                    f"{up} of {wanted} tunnels came up within {timeout_s:g} s; {why}", final=final_words(why)
                )
            pause(self._gateway, 5 * _POLL_S)

    def bring_up(self, numbers: Sequence[int], timeout_s: float) -> None:
        """Initiate these tunnels: call swanctl for each, in one shell in the gateway. Raise NegotiationFailed."""
        each = str(max(1, round(timeout_s)))
        lines = [
            shlex.join(
                self._command(
                    "--initiate", "--ike", connection_name(self.end, n), "--child", child_name(n), "--timeout", each
                )
            )
            + f" >{FOLDER}/said 2>&1 || exit 1"
            for n in numbers
        ]  # fmt: skip
        self._gateway.write(f"{FOLDER}/bring-up", "\n".join(lines))
        done = ended_in_time(
            self._gateway,
            ["sh", f"{FOLDER}/bring-up"],
            timeout_s + 5,
            f"not all of {len(numbers)} tunnels came up",
        )
        if done.rc:
            said = self._gateway.read([f"{FOLDER}/said"])[f"{FOLDER}/said"] or ""
            why = self.reason() or status.complaint(said) or f"swanctl gave no reason (exit code {done.rc})"
            raise NegotiationFailed(why, final=final_words(why))

    def rekey(self, phase: Phase) -> None:
        """Rekey each IKE SA (phase 1) or CHILD SA (phase 2) by a swanctl call that waits; raise NegotiationFailed."""
        names = dict.fromkeys(connection_name(self.end, n) for n in range(len(self.end.tunnels)))
        which = [("--ike", name) for name in names]
        if phase == 2:
            which = [("--child", child_name(n)) for n in range(len(self.end.tunnels))]
        script = "\n".join(
            f"{shlex.join(self._command('--rekey', *one))} >/dev/null || exit 1" for one in which
        )
        self._gateway.write(f"{FOLDER}/rekey", script)
        done = self._gateway.run(["sh", f"{FOLDER}/rekey"], timeout_s=60.0)
        if done.rc:
            raise NegotiationFailed(f"{self._gateway.side}: swanctl --rekey: {status.complaint(done.err)}")

    def mark(self) -> int:
        """Return the size of charon's log, bytes."""
        return log_size(self._gateway, LOG)

    def events(self, after: int = 0) -> list[SaEvent]:
        """Return the events in charon's log after this position in bytes; the log has a resolution of 1 ms."""
        return list(strongswan_events.events(log_lines(self._gateway, LOG, after, strongswan_events.TELLING)))

    def reason(self) -> str:
        """Return the last lines of charon's log that explain a failure."""
        return status.reason(self._gateway.read([LOG])[LOG] or "")

    def reading(self) -> IkeReading:
        """Return charon's version, its IKE SA and its CHILD SAs; if charon does not answer, the reading has a
        mismatch.
        """
        try:
            sas, version = self._sas(), self._version()
        except NegotiationFailed as failure:
            return IkeReading(self.name, "none", 0, mismatches=[f"charon does not answer: {failure}"])
        details = {"build": self._build.details}
        if not sas:
            problem = f"charon has no IKE SA: {self.reason() or 'no reason given'}"
            return IkeReading(version, "none", 0, details, [problem])
        children = list(sas[0].get("child-sas", {}).values())
        methods = status.authentication(self._gateway.run(["grep", "authentication of", LOG]).out)
        return IkeReading(
            version=version,
            ike=status.algorithms(sas[0]),
            tunnels_up=sum(child.get("state") == "INSTALLED" for child in children),
            details=details
            | {
                "identities": f"{sas[0].get('local-id')} ↔ {sas[0].get('remote-id')}",
                "authentication": " ↔ ".join(methods),
                "ESP by": "user space (kernel-libipsec, TUN)" if self._user_space else "the kernel's XFRM",
                "first child": status.shown(children[0]) if children else "none",
            },
            mismatches=status.mismatches(self.end, sas, methods, user_space=self._user_space),
        )

    def _version(self) -> str:
        """Return the daemon's version and, in brackets, its build: `strongSwan 5.9.8 (5.9.8-5+deb12u6)`."""
        answer = vici_text.messages(self._run("--version", "--daemon", "--raw"))
        version = answer[0].get("version", "of unknown version") if answer else "of unknown version"
        return f"strongSwan {version} ({self._build.name})"

    def sa_counters(self) -> SaCounters:
        """Return the packets of all CHILD SAs, as charon counts them, and the SPIs; for user-space ESP.

        The SPIs of the IKE SAs are among them, because charon also sends datagrams of its own when these are replaced.
        Without a CHILD SA there are none.
        """
        sas = self._sas()
        children = [child for sa in sas for child in sa.get("child-sas", {}).values()]
        named = [child.get(key) for child in children for key in ("spi-in", "spi-out")]
        named += [sa.get(key) for sa in sas if children for key in ("initiator-spi", "responder-spi")]
        return SaCounters(
            encrypted=sum(int(child.get("packets-out", 0)) for child in children),
            decrypted=sum(int(child.get("packets-in", 0)) for child in children),
            spis=frozenset(int(spi, 16) for spi in named if spi),
        )

    def memory_kib(self) -> int:
        """Return charon's resident memory, KiB; NegotiationFailed if it has died."""
        resident = processes.resident_kib(self._gateway, f"{FOLDER}/pid")
        if resident is None:
            raise NegotiationFailed(f"{self._gateway.side}: charon has died (out of memory?)")
        return resident

    def alive(self) -> bool:
        """Return whether charon runs."""
        return processes.resident_kib(self._gateway, f"{FOLDER}/pid") is not None

    def stop(self, *, suddenly: bool) -> None:
        """Stop charon, by SIGKILL if suddenly, else by SIGTERM; its TUN device and its routes disappear too."""
        signal = "KILL" if suddenly else "TERM"
        script = (
            f"pid=$(cat {FOLDER}/pid) && kill -{signal} $pid 2>/dev/null; n=0; "
            "while kill -0 $pid 2>/dev/null && [ $n -lt 500 ]; do sleep 0.02; n=$((n+1)); done; "
            f"kill -KILL $pid 2>/dev/null; rm -f {FOLDER}/vici; "
            "ip rule del priority 220 2>/dev/null; ip -6 rule del priority 220 2>/dev/null; true"
        )
        self._gateway.run(["sh", "-c", script])

    def _write_configuration(self) -> None:
        made = self._gateway.run(
            [
                "sh",
                "-c",
                f"umask 077; mkdir -p {FOLDER}/swanctl/x509 {FOLDER}/swanctl/x509ca {FOLDER}/swanctl/private",
            ]
        )
        if made.rc:
            raise EspbenchError(f"{self._gateway.side}: cannot make {FOLDER}: {made.err.strip()}")
        texts = {
            "strongswan.conf": strongswan_conf(
                user_space=self._user_space,
                peers=len(self.end.tunnels) if self.end.options.ike_sa_each else 1,
            ),
            "swanctl/swanctl.conf": swanctl_conf(self.end),
        }
        c = self.end.credentials
        if self.end.options.auth == "certificates":
            texts |= {
                "swanctl/x509ca/ca.pem": c.ca_pem,
                "swanctl/x509/own.pem": c.certificate_pem,
                "swanctl/private/own.pem": c.key_pem,
            }
        for name, text in texts.items():
            self._gateway.write(f"{FOLDER}/{name}", text)

    def _start_charon(self) -> None:
        """Start charon and wait for its vici socket; if it does not appear, raise NegotiationFailed with charon's
        output.
        """
        steps = round(START_S / 0.05)
        charon = shlex.quote(self._build.programs["charon"])
        script = (
            f"{self._environment} {charon} >{FOLDER}/out 2>&1 & pid=$!; echo $pid >{FOLDER}/pid; "
            f"n=0; while [ ! -S {FOLDER}/vici ] && [ $n -lt {steps} ] && kill -0 $pid 2>/dev/null; "
            f"do sleep 0.05; n=$((n+1)); done; [ -S {FOLDER}/vici ]"
        )
        done = self._gateway.run(["sh", "-c", script], timeout_s=START_S + 15)
        if done.rc:
            texts = self._gateway.read([f"{FOLDER}/out", LOG])
            words = " ".join(filter(None, (status.complaint(texts[f"{FOLDER}/out"] or ""), self.reason())))
            raise NegotiationFailed(
                f"{self._gateway.side}: charon did not start: {words or 'it said nothing'}"
            )

    def _tunnels_up(self) -> int:
        children = [child for sa in self._sas() for child in sa.get("child-sas", {}).values()]
        return len({child.get("name") for child in children if child.get("state") == "INSTALLED"})

    def _sas(self) -> list[dict[str, Any]]:
        """Return the IKE SAs of espbench's connections, each with its `child-sas`."""
        ours = []
        for message in vici_text.messages(self._run("--list-sas", "--raw")):
            ours += [sa for name, sa in message.items() if name.startswith(CONNECTION)]
        return ours

    @property
    def _environment(self) -> str:
        return f"STRONGSWAN_CONF={FOLDER}/strongswan.conf SWANCTL_DIR={FOLDER}/swanctl"

    def _command(self, *arguments: str) -> list[str]:
        # --uri must follow the command, because it is an option of the command.
        command, *rest = arguments
        environment = self._environment.split()
        return ["env", *environment, self._build.programs["swanctl"], command, "--uri", SOCKET, *rest]

    def _run(self, *arguments: str) -> str:
        done = self._gateway.run(self._command(*arguments))
        if done.rc:
            raise NegotiationFailed(
                f"{self._gateway.side}: swanctl {arguments[0]}: {status.complaint(done.err or done.out)}"
                + (f"; {why}" if (why := self.reason()) else "")
            )
        return done.out
