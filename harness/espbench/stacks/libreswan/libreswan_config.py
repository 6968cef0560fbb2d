# SPDX-License-Identifier: Apache-2.0
"""Writes libreswan's configuration of an `End`: ipsec.conf, ipsec.secrets, and pluto's names of the algorithms.

A plan has proposals in strongSwan's notation (`aes128-sha256-ecp256`). pluto has one notation in its configuration
(`aes128-sha2_256-dh19`) and another in its status (`AES_CBC_128-HMAC_SHA2_256-DH19`). The plan's checks have already
refused options that libreswan does not support.
"""

from __future__ import annotations

from typing import NamedTuple

from espbench.catalogue.stack_names import PLUTO_KEEPS_S
from espbench.stacks.daemons.daemon import End, margin_s

ALIAS = "tunnels"  # the alias of all connections, so that one command initiates all
CA = "espbench-ca"
# Pluto has one limit, at which an SA ends. The initiator replaces the SA at a random 25 to 31 % of this limit: 40 SAs
# of pluto 4.10 were replaced at 25.2 to 31.1 %. So with a limit of 3.2 times the plan's bytes, an SA is replaced after
# 80 to 100 % of the plan's bytes.
HARD_FIFTHS = 16
# Pluto retransmits after 0.5, 1, 2 and 4 s; a peer that has not answered after 8 s is considered dead.
RETRANSMIT_MS = 500
DEAD_AFTER_S = 8

_Keys = dict[str, str | int]  # keys of ipsec.conf and their values, in order


class Words(NamedTuple):
    """The names of an algorithm or a proposal in ipsec.conf and in pluto's status."""

    conf: str
    status: str


ESP = {
    "null-sha1": Words("null-sha1", "NULL-HMAC_SHA1_96"),
    "3des-sha1": Words("3des-sha1", "3DES_CBC-HMAC_SHA1_96"),
    "aes128-sha1": Words("aes128-sha1", "AES_CBC_128-HMAC_SHA1_96"),
    "aes256-sha256": Words("aes256-sha2_256", "AES_CBC_256-HMAC_SHA2_256_128"),
    "aes128gcm16": Words("aes_gcm128", "AES_GCM_16_128-NONE"),
    "aes256gcm16": Words("aes_gcm256", "AES_GCM_16_256-NONE"),
    "chacha20poly1305": Words("chacha20_poly1305", "CHACHA20_POLY1305-NONE"),
}
_ENCRYPTION = {
    "3des": Words("3des", "3DES_CBC"),
    "aes128": Words("aes128", "AES_CBC_128"),
    "aes256": Words("aes256", "AES_CBC_256"),
    "aes128gcm16": Words("aes_gcm_c_128", "AES_GCM_16_128"),
    "aes256gcm16": Words("aes_gcm_c_256", "AES_GCM_16_256"),
}
# One hash stands for both integrity (not with GCM) and PRF in a proposal of pluto.
_HASH = {
    "sha1": Words("sha1", "HMAC_SHA1"),
    "sha256": Words("sha2_256", "HMAC_SHA2_256"),
    "sha384": Words("sha2_384", "HMAC_SHA2_384"),
    "sha512": Words("sha2_512", "HMAC_SHA2_512"),
}
_GROUP = {
    "modp2048": Words("dh14", "MODP2048"),
    "modp3072": Words("dh15", "MODP3072"),
    "ecp256": Words("dh19", "DH19"),
    "ecp384": Words("dh20", "DH20"),
    "x25519": Words("dh31", "DH31"),
}


def ike_words(proposal: str) -> Words:
    """Return an IKE proposal of a plan in libreswan's notations."""
    encryption, integrity, group = proposal.split("-")
    words = (_ENCRYPTION[encryption], _HASH[integrity], _GROUP[group])
    return Words("-".join(word.conf for word in words), "-".join(word.status for word in words))


def setup_text(own: str) -> str:
    """Return the part of ipsec.conf that pluto itself reads: it listens on one address, without DNS, OCSP and CRLs."""
    return (
        "config setup\n"
        f"\tlisten={own}\n"
        "\tuniqueids=no\n"
        "\tdnssec-enable=no\n"
        "\tocsp-enable=no\n"
        "\tcrlcheckinterval=0\n"
        "\tvirtual-private=\n"
    )


def connections_text(end: End) -> str:
    """Return the part of ipsec.conf with the connections, one for each tunnel.

    `left` is this end. There is no keepalive and no MOBIKE, and by default no DPD and no rekeying, so that the daemons
    send nothing during a trial. Further CHILD SAs get keys without their own DH exchange.
    """
    keys = {
        **_identities(end),
        **_algorithms(end),
        **_path(end),
        **_lifetimes(end),
        **_retransmissions(end),
        **_extras(end),
        **_authentication(end),
    }
    text = "conn %default\n" + "".join(f"\t{key}={value}\n" for key, value in keys.items())
    # The alias is set for each connection: as a default it would make addconn 4.10 abort.
    for number, (own, peer) in enumerate(end.tunnels):
        text += f"conn t{number}\n\tconnalias={ALIAS}\n\tleftsubnet={own}\n\trightsubnet={peer}\n"
        if end.options.ike_sa_each:
            # Each tunnel has its own identity, because pluto puts tunnels between the same identities under one IKE SA.
            text += f"\t{'leftid' if end.initiates else 'rightid'}=@home-{number}\n"
    if end.options.open_to_all:
        text += "conn anyone\n\tright=%any\n\trightid=%any\n"
    return text


def _identities(end: End) -> _Keys:
    """Return the keys for the addresses and identities of both ends, and for how the tunnels are brought up."""
    return {
        "left": end.own,
        "leftid": f"@{end.own_id}",
        "right": end.peer,
        "rightid": f"@{end.peer_id}",
        "leftupdown": '"%disabled"',  # routes exist already; a script for each SA would take 1000 times as long
        "ikev2": "insist",
        "type": "tunnel",
        "auto": "ondemand" if end.options.on_demand and end.initiates else "add",
    }


def _algorithms(end: End) -> _Keys:
    """Return the keys for the proposals, and for how ESP numbers its packets."""
    o = end.options
    return {
        "ike": ike_words(o.ike).conf,
        "esp": ESP[end.suite.name].conf,
        "pfs": "no",
        "replay-window": o.replay_window,
        "esn": _yes(o.esn),
    }


def _path(end: End) -> _Keys:
    """Return the keys for the path of IKE and ESP between the ends: UDP encapsulation, DF, NAT, MOBIKE, fragments,
    and no ESP in a network card.
    """
    return {
        "encapsulation": _yes(end.options.udp_encapsulation),
        "nopmtudisc": _yes(end.options.df == "clear"),
        "nat-keepalive": "no",
        "mobike": "no",
        "fragmentation": "yes",
        "nic-offload": "no",  # libreswan's default takes the card's ESP; no other stack does
    }


def _lifetimes(end: End) -> _Keys:
    """Return the keys for how long SAs live, and which end replaces them in time."""
    o = end.options
    child_s, ike_s = int(o.lifetime_s), int(o.ike_lifetime_s)
    kept_s = margin_s(min(filter(None, (child_s, ike_s)), default=PLUTO_KEEPS_S))
    return {
        # Only the initiator rekeys; otherwise both ends would do it at once. The other end's SAs still expire. If its
        # peer dies or deletes the SAs, pluto brings only those connections up again that may rekey.
        "rekey": _yes(end.initiates and bool(child_s or ike_s or o.lifetime_bytes or o.dpd_s)),
        "salifetime": f"{child_s + kept_s if child_s else PLUTO_KEEPS_S}s",
        "ikelifetime": f"{ike_s + kept_s if ike_s else PLUTO_KEEPS_S}s",
        "rekeymargin": f"{kept_s}s",
        "rekeyfuzz": "0%",
        **({"ipsec-max-bytes": HARD_FIFTHS * o.lifetime_bytes // 5} if o.lifetime_bytes else {}),
    }


def _retransmissions(end: End) -> _Keys:
    """Return the keys for a peer that does not answer, and for frames while there is no SA."""
    return {
        "keyingtries": "%forever" if end.options.dpd_s else 1,
        "retransmit-interval": RETRANSMIT_MS,
        "retransmit-timeout": f"{DEAD_AFTER_S}s",
        "failureshunt": "drop",
        "negotiationshunt": "drop",
    }


def _extras(end: End) -> _Keys:
    """Return the keys for an XFRM interface and for dead peer detection, if the plan asks for them."""
    o = end.options
    keys: _Keys = {}
    if o.interface_id:
        # Pluto uses the device with this number in its name (ipsec2544) if it exists; otherwise it creates the device.
        keys["ipsec-interface"] = o.interface_id
    if o.dpd_s and end.initiates:
        # IKEv2 has no separate timeout for dead peers; pluto uses that of the retransmissions.
        keys |= {"dpddelay": f"{o.dpd_s:g}s", "dpdtimeout": f"{DEAD_AFTER_S}s", "dpdaction": "restart"}
    return keys


def _authentication(end: End) -> _Keys:
    if end.options.auth == "psk":
        return {"authby": "secret"}
    return {
        "authby": "rsasig",
        "leftcert": end.own_id,
        "leftsendcert": "always",
        "leftrsasigkey": "%cert",
        "rightrsasigkey": "%cert",
        "rightca": "%same",
    }


def secrets_text(end: End) -> str:
    """Return ipsec.secrets, with the PSK as hexadecimal digits, so that none of its characters is special."""
    if end.options.auth != "psk":
        return ""
    # Without names the secret is for any identity: with an IKE SA for each tunnel, each tunnel has its own identity.
    names = "" if end.options.ike_sa_each or end.options.open_to_all else f"@{end.own_id} @{end.peer_id} "
    return f"{names}: PSK 0x{end.credentials.psk.encode().hex()}\n"


def _yes(value: bool) -> str:
    return "yes" if value else "no"
