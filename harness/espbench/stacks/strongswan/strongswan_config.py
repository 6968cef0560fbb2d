# SPDX-License-Identifier: Apache-2.0
"""Writes strongSwan's configuration as text: strongswan.conf and swanctl.conf for one end of the tunnels."""

from __future__ import annotations

from collections.abc import Sequence

from espbench.stacks.daemons.daemon import End, hard_bytes, margin_s

FOLDER = "/run/espbench/strongswan"
SOCKET = f"unix://{FOLDER}/vici"
LOG = f"{FOLDER}/charon.log"
CONNECTION = "gateways"

_PLUGINS = (
    "random nonce openssl hmac kdf gcm chapoly curve25519 pem pkcs1 pkcs8 x509 pubkey constraints "
    "kernel-netlink socket-default vici"
)

# swanctl needs only the plugins that parse credentials. By default it loads all plugins, which takes seconds on a slow
# gateway.
_TOOL_PLUGINS = "pem pkcs1 pkcs8 x509 pubkey openssl random"

# All tunnels come from one address, so charon would take many at once for a flood. With cookies, each would cost one
# exchange more (RFC 7296 2.6).
_MANY_PEERS = """\
    block_threshold = 0
    cookie_threshold = 0
    cookie_threshold_ip = 0
    reuse_ikesa = no
"""


def strongswan_conf(*, user_space: bool, peers: int = 1) -> str:
    """Return charon's settings: only the plugins that it needs, few retransmissions, and no keep-alive packets."""
    plugins = f"kernel-libipsec {_PLUGINS}" if user_space else _PLUGINS
    return f"""\
charon {{
    load = {plugins}
    install_routes = {"yes" if user_space else "no"}
    routing_table = {220 if user_space else 0}
    install_virtual_ip = no
    keep_alive = 0
    retransmit_tries = 3
    retransmit_timeout = 1
    retransmit_base = 1.4
    half_open_timeout = 10
{_MANY_PEERS if peers > 1 else ""}    plugins {{
        vici {{
            socket = {SOCKET}
        }}
    }}
    filelog {{
        log {{
            path = {LOG}
            time_format = %s
            time_add_ms = yes
            ike_name = yes
            default = 1
            flush_line = yes
            append = no
        }}
    }}
}}
swanctl {{
    load = {_TOOL_PLUGINS}
}}
"""


def swanctl_conf(end: End, *, start: bool = False) -> str:
    """Return swanctl.conf: all tunnels as children of one connection, or a connection for each tunnel, and the secret.

    start: all tunnels but the first initiate when charon loads the file; the first is already up.
    """
    o = end.options
    numbers = range(len(end.tunnels))
    # The responder has all tunnels in one connection, which can serve any number of IKE SAs.
    groups = [[n] for n in numbers] if o.ike_sa_each and end.initiates else [numbers]
    connections = "".join(
        _connection(connection_name(end, group[0]), group, end, start=start) for group in groups
    )
    secret = f"""
secrets {{
    ike-pair {{
        id-own = {end.own_id}
        id-peer = {end.peer_id}
        secret = {end.credentials.psk}
    }}
}}
"""
    return f"connections {{\n{connections}}}\n" + (secret if o.auth == "psk" else "")


def connection_name(end: End, number: int) -> str:
    """Return the name of the connection to which a tunnel belongs."""
    return f"{CONNECTION}{number}" if end.options.ike_sa_each and end.initiates else CONNECTION


def _connection(name: str, numbers: Sequence[int], end: End, *, start: bool) -> str:
    o = end.options
    auth = "pubkey" if o.auth == "certificates" else "psk"
    certificate = "\n            certs = own.pem" if o.auth == "certificates" else ""
    anyone = ", ::/0" if ":" in end.peer else ", 0.0.0.0/0"
    children = "".join(_child(n, end, start=start and n > 0) for n in numbers)
    return f"""\
    {name} {{
        version = 2
        local_addrs = {end.own}
        remote_addrs = {end.peer}{anyone if o.open_to_all else ""}
        proposals = {o.ike}
        mobike = no
        dpd_delay = {_seconds(o.dpd_s if end.initiates else 0)}
        encap = {_yes(o.udp_encapsulation)}
        reauth_time = 0
        rekey_time = {_seconds(o.ike_lifetime_s if end.initiates else 0)}
        over_time = {margin_s(o.ike_lifetime_s)}s
        rand_time = 0
        keyingtries = {0 if o.dpd_s else 1}
        unique = {"never" if o.ike_sa_each else "no"}
        local {{
            auth = {auth}
            id = {end.own_id}{certificate}
        }}
        remote {{
            auth = {auth}
            id = {end.peer_id}
        }}
        children {{
{children}        }}
    }}
"""


def child_name(number: int) -> str:
    """Return the name of one tunnel's CHILD SA."""
    return f"tunnel{number}"


def esp_proposal(end: End) -> str:
    """Return the only ESP proposal that this end offers."""
    return end.suite.name + ("-esn" if end.options.esn else "-noesn")


def _child(number: int, end: End, *, start: bool) -> str:
    o = end.options
    own, peer = end.tunnels[number]
    # Only the initiator rekeys; otherwise both ends would do it at once. The responder's SAs still have a hard limit.
    rekey = o.lifetime_s if end.initiates else 0
    limits = (
        f"""
                rekey_bytes = {o.lifetime_bytes if end.initiates else 0}
                life_bytes = {hard_bytes(o.lifetime_bytes)}
                rand_bytes = 0"""
        if o.lifetime_bytes
        else ""
    )
    if o.idle_s and end.initiates:
        limits += f"""
                inactivity = {_seconds(o.idle_s)}"""
    interface = (
        f"""
                if_id_in = {o.interface_id}
                if_id_out = {o.interface_id}"""
        if o.interface_id
        else ""
    )
    return f"""\
            {child_name(number)} {{
                local_ts = {own}
                remote_ts = {peer}
                mode = tunnel
                esp_proposals = {esp_proposal(end)}
                replay_window = {o.replay_window}
                copy_df = {_yes(o.df == "copy")}
                rekey_time = {_seconds(rekey)}
                life_time = {_seconds(o.lifetime_s and o.lifetime_s + margin_s(o.lifetime_s))}
                rand_time = 0{limits}
                policies_fwd_out = no{interface}
                dpd_action = {"restart" if o.dpd_s and end.initiates else "clear"}
                start_action = {"trap" if o.waits_for_traffic and end.initiates else "start" if start else "none"}
            }}
"""


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _seconds(value: float) -> str:
    return f"{round(value)}s"
