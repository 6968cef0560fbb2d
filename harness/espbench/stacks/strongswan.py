# SPDX-License-Identifier: Apache-2.0
"""strongSwan's charon on one gateway, spoken to over vici by its own swanctl, inside the gateway."""

from __future__ import annotations

import re
import time
from typing import Any

from espbench.errors import EspbenchError, UsageError
from espbench.platforms.base import Gateway
from espbench.stacks import vici_text
from espbench.stacks.daemon import End, IkeReading, NegotiationFailed
from espbench.stacks.layers import DaemonFiles
from espbench.stacks.strongswan_config import (
    CONNECTION,
    FOLDER,
    LOG,
    PROPOSALS,
    SOCKET,
    child_name,
    strongswan_conf,
    swanctl_conf,
)

START_S = 15.0
TUN = "ipsec0"  # the first device kernel-libipsec makes
_POLL_S = 0.1
# Log lines of charon that say why, the telling ones of its level 1; the others are the course of things.
_TELLING = re.compile(
    r"notify error|unacceptable|NO_PROPOSAL|no (?:acceptable|matching|proposal)|proposal.* found|AUTHENTICATION_FAILED|"
    r"MAC mismatched|authentication of .* failed|giving up|not responding|peer not|no (?:shared key|private key|"
    r"trusted|issuer)|unable to|failed|constraint|unsupported|not supported|TS_UNACCEPTABLE|no IKE config",
    re.IGNORECASE,
)
_NOT_TELLING = re.compile(
    r"plugin '|plugins:|parsed |generating |failed to load|loading|initiate failed|establishing CHILD_SA"
)


class StrongSwan:
    """charon with one connection; user_space: ESP by its kernel-libipsec plugin over a TUN device."""

    name = "strongSwan"

    def __init__(self, gateway: Gateway, end: End, files: DaemonFiles, *, user_space: bool = False) -> None:
        if end.suite.name not in PROPOSALS:
            raise UsageError(
                f"suites: expected one strongSwan negotiates ({', '.join(PROPOSALS)}), got {end.suite.name}"
            )
        self._gateway = gateway
        self._end = end
        self._user_space = user_space
        self._charon = files.program("lib/ipsec/charon" if not files.prefix else "libexec/ipsec/charon")
        self._swanctl = files.program("sbin/swanctl")

    def start(self) -> None:
        """Write the configuration, start charon, load connection and secrets."""
        self._write_configuration()
        if self._user_space:
            self._gateway.run(["sh", "-c", "[ -e /dev/net/tun ] || modprobe tun"])
        self._start_charon()
        if self._user_space:
            self._widen_tun()
        self._load()

    def initiate(self, timeout_s: float) -> None:
        """Bring every tunnel up, all under one IKE SA."""
        deadline = time.monotonic() + timeout_s
        seconds = str(max(1, round(timeout_s)))
        arguments = ["--initiate", "--ike", CONNECTION, "--child", child_name(0), "--timeout", seconds]
        done = self._gateway.run(self._command(*arguments), timeout_s=timeout_s + 5)
        if done.rc:
            raise NegotiationFailed(self.reason() or _last_line(done.out + done.err))
        wanted = len(self._end.tunnels)
        if wanted == 1:
            return
        # The others by loading the connection anew with children that start by themselves: quicker by
        # far than a call for each.
        self._gateway.write(f"{FOLDER}/swanctl/swanctl.conf", swanctl_conf(self._end, start=True))
        self._run("--load-conns")
        while (up := self._tunnels_up()) < wanted:
            if time.monotonic() > deadline:
                raise NegotiationFailed(
                    f"{up} of {wanted} tunnels came up within {timeout_s:g} s; {self.reason() or 'no reason given'}"
                )
            time.sleep(5 * _POLL_S)

    def reason(self) -> str:
        """The telling lines at the end of charon's log."""
        log = self._gateway.read([LOG])[LOG] or ""
        told = [
            re.sub(r"^\S+\s+", "", line).strip()
            for line in log.splitlines()
            if _TELLING.search(line) and not _NOT_TELLING.search(line)
        ]
        return "; ".join(dict.fromkeys(told[-4:]))

    def reading(self) -> IkeReading:
        """What charon says of itself, its IKE SA and its children."""
        found = self._sas()
        if not found:
            raise EspbenchError(
                f"{self._gateway.side}: charon has no IKE SA: {self.reason() or 'no reason given'}"
            )
        sa = found[0]
        children = list(sa.get("child-sas", {}).values())
        wanted = self._end.options
        ike = "-".join(
            filter(None, (sa.get("encr-alg", ""), sa.get("encr-keysize", ""), sa.get("integ-alg", ""),
                          sa.get("prf-alg", ""), sa.get("dh-group", "")))
        )  # fmt: skip
        mismatches = []
        if len(found) > 1:
            mismatches.append(f"{len(found)} IKE SAs instead of 1")
        if sa.get("state") != "ESTABLISHED":
            mismatches.append(f"the IKE SA is {sa.get('state')}")
        for child in children:
            mismatches += _child_mismatches(child, self._end, user_space=self._user_space)
        return IkeReading(
            version=self.version(),
            ike=ike,
            tunnels_up=sum(child.get("state") == "INSTALLED" for child in children),
            details={
                "identities": f"{sa.get('local-id')} ↔ {sa.get('remote-id')}",
                "authentication": "certificates (RSA 2048)" if wanted.auth == "certificates" else "PSK",
                "ESP by": "user space (kernel-libipsec, TUN)" if self._user_space else "the kernel's XFRM",
                "first child": _shown(children[0]) if children else "none",
            },
            mismatches=list(dict.fromkeys(mismatches)),
        )

    def version(self) -> str:
        """Such as `strongSwan 5.9.8`, asked of the daemon itself."""
        answer = vici_text.messages(self._run("--version", "--daemon", "--raw"))
        version = answer[0].get("version", "of unknown version") if answer else "of unknown version"
        return f"strongSwan {version}"

    def packets(self) -> tuple[int, int]:
        """Frames (encrypted, decrypted) by all children, as charon counts them; for user-space ESP."""
        children = [child for sa in self._sas() for child in sa.get("child-sas", {}).values()]
        return (
            sum(int(child.get("packets-out", 0)) for child in children),
            sum(int(child.get("packets-in", 0)) for child in children),
        )

    def memory_kib(self) -> int:
        """Charon's resident memory, KiB; EspbenchError when it has died."""
        pid = (self._gateway.read([f"{FOLDER}/pid"])[f"{FOLDER}/pid"] or "").strip()
        status = self._gateway.read([f"/proc/{pid}/status"])[f"/proc/{pid}/status"] or ""
        resident = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
        if resident is None:
            raise EspbenchError(f"{self._gateway.side}: charon has died (out of memory?)")
        return int(resident[1])

    def stop(self) -> None:
        """End charon and wait for its end; a TUN device and its routes go with it."""
        script = (
            f"pid=$(cat {FOLDER}/pid) && kill -9 $pid 2>/dev/null; n=0; "
            "while kill -0 $pid 2>/dev/null && [ $n -lt 100 ]; do sleep 0.02; n=$((n+1)); done; "
            f"rm -f {FOLDER}/vici; ip rule del priority 220 2>/dev/null; ip -6 rule del priority 220 2>/dev/null; true"
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
            "strongswan.conf": strongswan_conf(user_space=self._user_space),
            "swanctl/swanctl.conf": swanctl_conf(self._end),
        }
        c = self._end.credentials
        if self._end.options.auth == "certificates":
            texts |= {
                "swanctl/x509ca/ca.pem": c.ca_pem,
                "swanctl/x509/own.pem": c.certificate_pem,
                "swanctl/private/own.pem": c.key_pem,
            }
        for name, text in texts.items():
            self._gateway.write(f"{FOLDER}/{name}", text)

    def _start_charon(self) -> None:
        """Return when its vici socket is there; if it ends before, its own words say why."""
        steps = round(START_S / 0.05)
        script = (
            f"{self._environment} {self._charon} >{FOLDER}/out 2>&1 & pid=$!; echo $pid >{FOLDER}/pid; "
            f"n=0; while [ ! -S {FOLDER}/vici ] && [ $n -lt {steps} ] && kill -0 $pid 2>/dev/null; "
            f"do sleep 0.05; n=$((n+1)); done; [ -S {FOLDER}/vici ]"
        )
        done = self._gateway.run(["sh", "-c", script], timeout_s=START_S + 15)
        if done.rc:
            texts = self._gateway.read([f"{FOLDER}/out", LOG])
            words = " ".join(filter(None, (_last_line(texts[f"{FOLDER}/out"] or ""), self.reason())))
            raise NegotiationFailed(
                f"{self._gateway.side}: charon did not start: {words or 'it said nothing'}"
            )

    def _widen_tun(self) -> None:
        """The TUN device as wide as the link: frames are fragmented after ESP, as the kernel's ESP does it."""
        link = f"/sys/class/net/{self._gateway.wan}/mtu"
        mtu = (self._gateway.read([link])[link] or "").strip()
        done = self._gateway.run(["ip", "link", "set", "dev", TUN, "mtu", mtu])
        if done.rc:
            raise EspbenchError(f"{self._gateway.side}: cannot set the MTU of {TUN}: {done.err.strip()}")

    def _load(self) -> None:
        output = self._run("--load-all", "--noprompt")
        if "failed" in output:
            raise NegotiationFailed(f"{self._gateway.side}: {_last_line(output)}")

    def _tunnels_up(self) -> int:
        children = [child for sa in self._sas() for child in sa.get("child-sas", {}).values()]
        return len({child.get("name") for child in children if child.get("state") == "INSTALLED"})

    def _sas(self) -> list[dict[str, Any]]:
        """The IKE SAs of our connection, each with its `child-sas`."""
        found = []
        for message in vici_text.messages(self._run("--list-sas", "--raw")):
            found += [sa for name, sa in message.items() if name == CONNECTION]
        return found

    @property
    def _environment(self) -> str:
        return f"STRONGSWAN_CONF={FOLDER}/strongswan.conf SWANCTL_DIR={FOLDER}/swanctl"

    def _command(self, *arguments: str) -> list[str]:
        # --uri stands behind the command, whose options these are.
        command, *rest = arguments
        environment = self._environment.split()
        return ["env", *environment, self._swanctl, command, "--uri", SOCKET, *rest]

    def _run(self, *arguments: str) -> str:
        done = self._gateway.run(self._command(*arguments))
        if done.rc:
            raise EspbenchError(
                f"{self._gateway.side}: swanctl {arguments[0]}: {_last_line(done.err or done.out)}"
                + (f"; {why}" if (why := self.reason()) else "")
            )
        return done.out


def _child_mismatches(child: dict[str, Any], end: End, *, user_space: bool) -> list[str]:
    """What a child is that the plan did not ask for; algorithms and windows of kernel SAs are read there."""
    wanted_encap = end.options.udp_encapsulation or user_space
    problems = []
    if child.get("state") not in ("INSTALLED", "REKEYED", "REKEYING"):
        problems.append(f"{child.get('name')} is {child.get('state')}")
    if (child.get("encap") == "yes") != wanted_encap:
        problems.append(f"UDP encapsulation: expected {wanted_encap}, charon says {child.get('encap', 'no')}")
    if child.get("mode") != "TUNNEL":
        problems.append(f"mode: expected TUNNEL, charon says {child.get('mode')}")
    if user_space and (got := _algorithms(child)) != (wanted := _EXPECTED[end.suite.name]):
        problems.append(f"suite: expected {wanted}, charon says {got}")
    return problems


# What charon calls the algorithms of a suite: `encr-alg-keysize integ-alg`.
_EXPECTED = {
    "null-sha1": "NULL HMAC_SHA1_96",
    "3des-sha1": "3DES_CBC HMAC_SHA1_96",
    "aes128-sha1": "AES_CBC-128 HMAC_SHA1_96",
    "aes256-sha256": "AES_CBC-256 HMAC_SHA2_256_128",
    "aes128gcm16": "AES_GCM_16-128",
    "aes256gcm16": "AES_GCM_16-256",
    "chacha20poly1305": "CHACHA20_POLY1305",
}


def _algorithms(child: dict[str, Any]) -> str:
    size = child.get("encr-keysize", "")
    cipher = child.get("encr-alg", "") + (
        f"-{size}" if size and child.get("encr-alg", "").startswith("AES") else ""
    )
    return " ".join(filter(None, (cipher, child.get("integ-alg", ""))))


def _shown(child: dict[str, Any]) -> str:
    """A child without what changes with every frame."""
    kept = (
        "state",
        "mode",
        "protocol",
        "encap",
        "encr-alg",
        "encr-keysize",
        "integ-alg",
        "esn",
        "local-ts",
        "remote-ts",
    )
    return ", ".join(f"{key} {child[key]}" for key in kept if key in child)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return lines[-1] if lines else ""
