# SPDX-License-Identifier: Apache-2.0
"""Interprets charon's status and log: compares its SAs with the plan, and selects the log lines that
explain a failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_network
from typing import Any

from espbench.catalogue.certificate_keys import CERTIFICATE_KEYS
from espbench.stacks.daemons.daemon import End

# These lines of charon's log, at level 1, explain a failure; the other lines report normal progress.
_TELLING = re.compile(
    r"notify error|unacceptable|NO_PROPOSAL|no (?:acceptable|matching|proposal)|proposal.* found|AUTHENTICATION_FAILED|"
    r"MAC mismatched|authentication of .* failed|giving up|not responding|peer not|no (?:shared key|private key|"
    r"trusted|issuer)|unable to|failed|constraint|unsupported|not supported|TS_UNACCEPTABLE|no IKE config",
    re.IGNORECASE,
)
_NOT_TELLING = re.compile(
    r"plugin '|plugins:|parsed |generating |failed to load|loading|initiate failed|establishing CHILD_SA"
)
_AUTHENTICATED = re.compile(
    r"authentication of '[^']*'( \(myself\))? with (.+?)(?: successful)?$", re.MULTILINE
)
# A line's head is `1700000000.123 07[IKE] <gateways|1> `: time, thread and subsystem, connection and IKE SA.
_HEAD = re.compile(r"^(?:\d+\.\d+ )?\S+\s+(?:<\S+> )?")
# ESP suites and charon's names of their algorithms, in the form that `algorithms` returns.
ESP = {
    "null-sha1": "NULL-HMAC_SHA1_96",
    "3des-sha1": "3DES_CBC-HMAC_SHA1_96",
    "aes128-sha1": "AES_CBC_128-HMAC_SHA1_96",
    "aes256-sha256": "AES_CBC_256-HMAC_SHA2_256_128",
    "aes128gcm16": "AES_GCM_16_128",
    "aes256gcm16": "AES_GCM_16_256",
    "chacha20poly1305": "CHACHA20_POLY1305",
}
# These three tables give charon's names for the parts of an IKE proposal: encryption, (integrity, PRF), group. With GCM
# the integrity algorithm is omitted.
_ENCRYPTION = {
    "3des": "3DES_CBC",
    "aes128": "AES_CBC_128",
    "aes256": "AES_CBC_256",
    "aes128gcm16": "AES_GCM_16_128",
    "aes256gcm16": "AES_GCM_16_256",
}
_HASH = {
    "sha1": ("HMAC_SHA1_96", "PRF_HMAC_SHA1"),
    "sha256": ("HMAC_SHA2_256_128", "PRF_HMAC_SHA2_256"),
    "sha384": ("HMAC_SHA2_384_192", "PRF_HMAC_SHA2_384"),
    "sha512": ("HMAC_SHA2_512_256", "PRF_HMAC_SHA2_512"),
}
_GROUP = {
    "modp2048": "MODP_2048",
    "modp3072": "MODP_3072",
    "ecp256": "ECP_256",
    "ecp384": "ECP_384",
    "x25519": "CURVE_25519",
}


def ike_words(proposal: str) -> str:
    """Return an IKE proposal of a plan as charon shows the proposal of the IKE SA."""
    encryption, integrity, group = proposal.split("-")
    hashes = _HASH[integrity][1:] if "gcm" in encryption else _HASH[integrity]
    return "-".join((_ENCRYPTION[encryption], *hashes, _GROUP[group]))


def algorithms(sa: dict[str, Any]) -> str:
    """Return the algorithms of an IKE SA or a CHILD SA, from the output of `swanctl --list-sas --raw`."""
    cipher = sa.get("encr-alg", "none")
    if cipher.startswith("AES"):
        cipher += f"_{sa.get('encr-keysize')}"
    return "-".join(filter(None, (cipher, *(sa.get(key) for key in ("integ-alg", "prf-alg", "dh-group")))))


def authentication(log: str) -> tuple[str, str]:
    """Return the authentication methods of (this end, its peer): `pre-shared key`, `RSA_EMSA_PKCS1_SHA2_256`."""
    said = {bool(myself): method for myself, method in _AUTHENTICATED.findall(log)}
    return said.get(True, "nothing said"), said.get(False, "nothing said")


def mismatches(
    end: End, sas: list[dict[str, Any]], methods: tuple[str, str], *, user_space: bool
) -> list[str]:
    """Return the differences between charon's IKE SA and CHILD SAs and the configuration of this end.

    sas: the IKE SAs, at least one. methods: the authentication methods of (this end, its peer). The ESP SAs in the
    kernel are compared elsewhere (`read_back`), except with user_space, where charon itself has them.
    """
    o = end.options
    (sa, *more) = sas
    children = list(sa.get("child-sas", {}).values())
    problems = [f"{len(sas)} IKE SAs instead of 1"] if more else []
    wanted: list[tuple[str, str, str]] = [
        ("IKE SA", "ESTABLISHED", sa.get("state", "")),
        ("IKE proposal", ike_words(o.ike), algorithms(sa)),
        ("own identity", end.own_id, sa.get("local-id", "")),
        ("peer's identity", end.peer_id, sa.get("remote-id", "")),
    ]
    for child in children:
        wanted += [
            ("mode", "TUNNEL", child.get("mode", "")),
            ("UDP encapsulation", "yes" if o.udp_encapsulation else "no", child.get("encap", "no")),
        ]
        if user_space:
            wanted.append(("suite", ESP[end.suite.name], algorithms(child)))
    problems += [f"{what}: expected {want}, charon has {got}" for what, want, got in wanted if want != got]
    method_asked = "pre-shared key" if o.auth == "psk" else CERTIFICATE_KEYS[o.certificate].charon
    problems += [
        f"authentication: expected {method_asked}, charon's log says {method}"
        for method in methods
        if not method.startswith(method_asked)
    ]
    up = [child for child in children if child.get("state") == "INSTALLED"]
    missing = _networks(end.tunnels) - _networks(
        (own, peer)
        for child in up
        for own in child.get("local-ts", ())
        for peer in child.get("remote-ts", ())
    )
    problems += [f"no child between {own} and {peer}" for own, peer in sorted(missing)[:3]]
    return list(dict.fromkeys(problems))


def shown(child: dict[str, Any]) -> str:
    """Return a CHILD SA as text, without the values that change with every packet."""
    kept = ("state", "mode", "protocol", "encap", "esn", "local-ts", "remote-ts")
    parts = [
        f"{key} {', '.join(v) if isinstance(v := child[key], list) else v}" for key in kept if key in child
    ]
    return ", ".join([algorithms(child), *parts])


def reason(log: str) -> str:
    """Return the last lines of a log that explain a failure, each once."""
    lines = [
        _HEAD.sub("", line).strip()
        for line in log.splitlines()
        if _TELLING.search(line) and not _NOT_TELLING.search(line)
    ]
    return "; ".join(dict.fromkeys(lines[-4:]))


def complaint(output: str) -> str:
    """Return the lines of swanctl's output that report an error, else its last line; optional folders are ignored."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("opening directory")]
    return "; ".join([line for line in lines if re.search("failed|invalid|error|unable", line)] or lines[-1:])


def _networks(pairs: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    return {(str(ip_network(own)), str(ip_network(peer))) for own, peer in pairs}
