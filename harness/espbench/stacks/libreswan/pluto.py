# SPDX-License-Identifier: Apache-2.0
"""libreswan's pluto on one gateway, controlled by libreswan's whack in the same gateway."""

from __future__ import annotations

import base64
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from ipaddress import ip_network

from espbench.platforms.base import CommandResult, Gateway
from espbench.platforms.gateway_time import now_s, pause
from espbench.stacks.daemons import layers, processes
from espbench.stacks.daemons.builds import Build
from espbench.stacks.daemons.daemon import (
    PKCS12_PASSWORD,
    End,
    IkeReading,
    NegotiationFailed,
    ended_in_time,
    final_words,
)
from espbench.stacks.daemons.sa_events import Phase, SaEvent, log_lines, log_size
from espbench.stacks.libreswan import libreswan_config as config
from espbench.stacks.libreswan import libreswan_events
from espbench.stacks.libreswan import libreswan_status as status

FOLDER = "/run/espbench/libreswan"  # configuration, secrets, NSS database, socket, log: a tmpfs
LOG = f"{FOLDER}/log"
_COMPLAINT = re.compile(r"while loading|\bbad\b|error", re.IGNORECASE)
_SHORTEST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 0.5
_LOG_LINES = 400

# Pluto continues its start in the background. It answers whack when it has finished, for example has deleted the
# kernel's policies. Its configuration, setup.conf, has no connections: pluto would load them in a separate process,
# which would race with espbench's own loading of them, and undo it. addconn of libreswan 4 complains if there is no
# /etc/hosts, as in a minimal Debian; /etc of the gateway is in memory (layers.py). Pluto's log has local times, so
# pluto gets a time zone without daylight saving time.
_START = """\
set -e
test -e /etc/hosts || echo 127.0.0.1 localhost > /etc/hosts
umask 077
certutil -N -d sql:{folder} --empty-password
cd {folder}
{import_}
TZ=UTC0 {pluto} --config {folder}/setup.conf --rundir {folder} --ipsecdir {folder} --nssdir {folder} \\
    --secretsfile {folder}/secrets --logfile {log} > {folder}/output 2>&1 || {{ cat {folder}/output >&2; exit 1; }}
{whack} --rundir {folder} --globalstatus > {folder}/output 2>&1 || {{ cat {folder}/output >&2; exit 1; }}
"""
_LOAD = (
    "{addconn} --config {folder}/connections.conf --ctlsocket {folder}/pluto.ctl --autoall 2>&1 >/dev/null"
)
# The CA is imported first, as trusted, then the own certificate and key. The files with secrets are deleted at once.
_IMPORT = """\
certutil -A -d sql:{folder} -n {ca} -t CT,, -a -i ca.pem
base64 -d < end.p12.base64 > end.p12
pk12util -i end.p12 -d sql:{folder} -W {password} >&2
rm -f end.p12 end.p12.base64 ca.pem
"""


class Libreswan:
    """A pluto with a connection for each tunnel."""

    name = "libreswan"

    def __init__(self, gateway: Gateway, end: End, build: Build) -> None:
        self._gateway = gateway
        self.end = end
        self._build = build

    def install(self) -> None:
        """Lay the build's files over the gateway's root (`layers.lay`)."""
        layers.lay(self._gateway, self._build)

    def start(self) -> None:
        """Fill the NSS database and start pluto. Raise NegotiationFailed, which quotes pluto, if it does not start."""
        self._gateway.run(["sh", "-c", f"rm -rf {FOLDER}; mkdir -p -m 700 {FOLDER} /run/pluto"])
        write = self._gateway.write
        write(f"{FOLDER}/setup.conf", config.setup_text(self.end.own))
        write(f"{FOLDER}/connections.conf", config.connections_text(self.end))
        write(f"{FOLDER}/secrets", config.secrets_text(self.end))
        import_ = ""
        if self.end.options.auth == "certificates":
            write(f"{FOLDER}/ca.pem", self.end.credentials.ca_pem)
            write(f"{FOLDER}/end.p12.base64", base64.b64encode(self.end.credentials.pkcs12).decode())
            import_ = _IMPORT.format(folder=FOLDER, ca=config.CA, password=PKCS12_PASSWORD)
        done = self._gateway.run(
            [
                "sh",
                "-c",
                _START.format(
                    folder=FOLDER,
                    log=LOG,
                    import_=import_,
                    pluto=shlex.quote(self._build.programs["pluto"]),
                    whack=shlex.quote(self._build.programs["whack"]),
                ),
            ]
        )
        if done.rc:
            raise NegotiationFailed(
                f"gateway {self._gateway.side}: libreswan did not start: {self._words(done)}"
            )

    def load(self) -> None:
        """Load the connections. Raise NegotiationFailed, which quotes pluto or addconn, if one is not understood."""
        addconn = shlex.quote(self._build.programs["addconn"])
        done = self._gateway.run(["sh", "-c", _LOAD.format(folder=FOLDER, addconn=addconn)])
        wanted = len(self.end.tunnels) + self.end.options.open_to_all
        # If addconn does not understand an option of a connection, it prints that, and loads the connection without it.
        understood = done.rc == 0 and not _COMPLAINT.search(done.out)
        loaded = self._status().loaded if understood else 0
        if loaded != wanted:
            raise NegotiationFailed(
                f"gateway {self._gateway.side}: libreswan did not start with its {wanted} connections"
                f" ({loaded} loaded): {self._words(done)}",
                final=bool(_COMPLAINT.search(done.out)),
            )

    def initiate(self, timeout_s: float) -> None:
        """Bring every tunnel up; raise NegotiationFailed if they are not all up within timeout_s, or cannot come up."""
        deadline = now_s(self._gateway) + timeout_s
        logged = int((self._gateway.run(["wc", "-l", LOG]).out.split() or ["0"])[0])
        self._whacked("--initiate", "--asynchronous", "--name", config.ALIAS)
        wanted = len(self.end.tunnels)
        idle = 0
        pause_s = _SHORTEST_PAUSE_S  # it grows, because polling takes CPU time that a thousand tunnels need
        while True:
            answer = self._whacked("--globalstatus")
            now = status.progress(answer.out)
            if now.up >= wanted:
                return
            idle = 0 if now.under_way else idle + 1
            log = self._log(after=logged)
            late = now_s(self._gateway) > deadline
            # Between two SAs, for a moment no SA may be under way; after three polls in a row it is not a moment.
            if late or idle >= 3 or status.hopeless(log):
                within = f" within {timeout_s:g} s" if late else ""
                why = status.reason(log) or answer.err.strip() or status.last_line(log) or "no reason given"
                raise NegotiationFailed(
                    f"{now.up} of {wanted} tunnels came up{within}: {why}", final=final_words(why)
                )
            pause(self._gateway, pause_s)
            pause_s = min(1.5 * pause_s, _LONGEST_PAUSE_S)

    def bring_up(self, numbers: Sequence[int], timeout_s: float) -> None:
        """Initiate these tunnels: call whack for each and wait, in one shell in the gateway. Raise
        NegotiationFailed.
        """
        whack = shlex.join([self._build.programs["whack"], "--rundir", FOLDER])
        lines = [f"{whack} --initiate --name t{n} >{FOLDER}/said 2>&1 || exit 1" for n in numbers]
        self._gateway.write(f"{FOLDER}/bring-up", "\n".join(lines))
        logged = self.mark()
        done = ended_in_time(
            self._gateway,
            ["sh", f"{FOLDER}/bring-up"],
            timeout_s + 5,
            f"not all of {len(numbers)} tunnels came up",
        )
        if done.rc:
            said = self._gateway.read([f"{FOLDER}/said"])[f"{FOLDER}/said"] or ""
            why = status.reason(log_lines(self._gateway, LOG, logged, ".")) or status.last_line(said)
            raise NegotiationFailed(why or "no reason given", final=final_words(why))

    def rekey(self, phase: Phase) -> None:
        """Rekey by whack, without waiting for the end; raise NegotiationFailed if whack refuses.

        With one IKE SA for all tunnels, whack can rekey it by the name of only one of its connections.
        """
        which = "--rekey-ike" if phase == 1 else "--rekey-ipsec"
        answers = [
            self._whacked(which, "--asynchronous", "--name", f"t{number}")
            for number in range(len(self.end.tunnels))
        ]
        done = sum(not answer.rc for answer in answers)
        if done < (1 if phase == 1 and not self.end.options.ike_sa_each else len(answers)):
            said = status.last_line(answers[-1].out + answers[-1].err)
            raise NegotiationFailed(f"{self._gateway.side}: whack {which}: {said}")

    def stop(self, *, suddenly: bool) -> None:
        """Stop pluto, by SIGKILL if suddenly, else by whack, and wait until its process has ended."""
        if not suddenly:
            self._whacked("--shutdown")
        self._gateway.run(
            [
                "sh",
                "-c",
                f"pid=$(cat {FOLDER}/pluto.pid 2>/dev/null) || exit 0; n=0; "
                + ("kill -KILL $pid 2>/dev/null; " if suddenly else "")
                + "while kill -0 $pid 2>/dev/null && [ $n -lt 500 ]; do sleep 0.02; n=$((n+1)); done; "
                f"kill -KILL $pid 2>/dev/null; rm -f {FOLDER}/pluto.pid {FOLDER}/pluto.ctl",
            ]
        )

    def mark(self) -> int:
        """Return the size of pluto's log, bytes."""
        return log_size(self._gateway, LOG)

    def events(self, after: int = 0) -> list[SaEvent]:
        """Return the events in pluto's log after this position in bytes; the log has a resolution of 1 µs."""
        return list(libreswan_events.events(log_lines(self._gateway, LOG, after, libreswan_events.TELLING)))

    def reason(self) -> str:
        """Return the last lines of pluto's log that explain a failure; the log has no secrets."""
        return status.reason(self._log())

    def alive(self) -> bool:
        """Return whether pluto runs."""
        return processes.resident_kib(self._gateway, f"{FOLDER}/pluto.pid") is not None

    def reading(self) -> IkeReading:
        """Return pluto's version and its connections' state; if pluto does not run, the reading has a mismatch."""
        answer = self._whacked("--status")
        if answer.rc:
            return IkeReading(
                "libreswan",
                "none",
                0,
                mismatches=[f"pluto is not running: {(answer.err or answer.out).strip()}"],
            )
        parsed = status.status(answer.out)
        return IkeReading(
            version=f"Libreswan {parsed.version} ({self._build.name})",
            ike=", ".join(parsed.ike) or "none",
            tunnels_up=len(parsed.tunnels),
            details={
                "build": self._build.details,
                "ESP": ", ".join(parsed.esp) or "none",
                "identities": f"@{self.end.own_id} ↔ @{self.end.peer_id}",
                **{key: _said(values) for key, values in parsed.keys.items()},
            },
            mismatches=mismatches(self.end, parsed),
        )

    def _words(self, done: CommandResult) -> str:
        said = [(done.out + done.err).strip(), self.reason()]
        return "; ".join(filter(None, said)) or "no reason given"

    def _status(self) -> status.Status:
        return status.status(self._whacked("--status").out)

    def _whacked(self, *arguments: str) -> CommandResult:
        return self._gateway.run([self._build.programs["whack"], "--rundir", FOLDER, *arguments])

    def _log(self, after: int = 0) -> str:
        """Return the last lines of pluto's log, without its first `after` lines; at most _LOG_LINES."""
        script = f"tail -n +{after + 1} {LOG} | tail -n {_LOG_LINES}"
        return self._gateway.run(["sh", "-c", script]).out


def mismatches(end: End, parsed: status.Status) -> list[str]:
    """Return the differences between pluto's status and the configuration of this end."""
    o = end.options
    keys = parsed.keys
    problems = [
        f"{what}: expected {wanted}, libreswan has {got}"
        for what, wanted, got in (
            ("tunnels up", len(end.tunnels), len(parsed.tunnels)),
            ("IKE SAs", 1, parsed.ike.total()),
            ("IKE proposal", config.ike_words(o.ike).status, _plain(_said(parsed.ike))),
            ("ESP proposal", config.ESP[end.suite.name].status, _plain(_said(parsed.esp))),
            ("replay window", str(o.replay_window), _said(keys["replay_window"])),
            ("authentication", _AUTH[o.auth], _said(keys["our auth"]).partition("(")[0]),
            ("UDP encapsulation", "yes" if o.udp_encapsulation else "no", _said(keys["encaps"])),
            ("ESN", "ESN_YES" if o.esn else "ESN_NO", _esn(keys["policy"])),
        )
        if wanted != got
    ]
    missing = _networks(end.tunnels) - _networks(parsed.tunnels)
    return problems + [f"no SA between {own} and {peer}" for own, peer in sorted(missing)[:3]]


_AUTH = {"psk": "secret", "certificates": "rsasig"}


def _plain(words: str) -> str:
    """Remove the key length of ciphers that have only one; not all versions of pluto write it."""
    return re.sub(r"(3DES_CBC|NULL|CHACHA20_POLY1305)_\d+", r"\1", words)


def _esn(policies: Counter[str]) -> str:
    words = {word for policy in policies for word in policy.split("+") if word.startswith("ESN_")}
    return ", ".join(sorted(words)) or "nothing"


def _networks(tunnels: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    return {(str(ip_network(own)), str(ip_network(peer))) for own, peer in tunnels}


def _said(values: Counter[str]) -> str:
    """Return the value if all connections have the same, else each value with the number of its connections."""
    if len(values) == 1:
        return next(iter(values))
    return ", ".join(f"{value} ({number} times)" for value, number in values.items()) or "nothing"
