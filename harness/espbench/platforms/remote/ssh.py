# SPDX-License-Identifier: Apache-2.0
"""Uses the system's OpenSSH client without prompts, new host keys and forwarding.

The command line has the box and the paths of the key files; no secret is on it or in a log.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from espbench.errors import EspbenchError, GatewayFailed, UsageError
from espbench.platforms.base import Readiness

CONNECT_S = 30
# A box that does not answer is an error after ALIVE_S * ALIVE_COUNT seconds, even if TCP would still retransmit.
ALIVE_S, ALIVE_COUNT = 3, 3
_OPTIONS = {
    "BatchMode": "yes",
    "StrictHostKeyChecking": "yes",
    "UpdateHostKeys": "no",
    "ConnectTimeout": str(CONNECT_S),
    "ConnectionAttempts": "1",
    "ServerAliveInterval": str(ALIVE_S),
    "ServerAliveCountMax": str(ALIVE_COUNT),
    "PreferredAuthentications": "publickey",
    "ForwardAgent": "no",
    "ForwardX11": "no",
    "ClearAllForwardings": "yes",
    "PermitLocalCommand": "no",
    "ControlMaster": "no",
    "ControlPath": "none",
    "EscapeChar": "none",
    "Compression": "no",
    "LogLevel": "INFO",  # at this level ssh says that a box does not answer any more
}


# The exit status of ssh is that of the command on the box. These two are the shell's own there: it cannot execute, or
# does not find, the program, whatever the language of its message.
_NO_PROGRAM = (126, 127)
_NO_PYTHON = (
    "expected Python on the box, got none that runs{said}; install python3 there, or give its path as python:"
)
# Patterns of messages, and the remedies; the first pattern that matches is used.
_KNOWN = (
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "its host key is not the one in {known_hosts}: another machine answers there, or it was installed "
        "anew; find out which before you put the new key there",
    ),
    (
        "host key is known for|Host key verification failed",
        "expected its host key in {known_hosts}, got none of it; fetch it with `ssh-keyscan -p {port} {host}`, "
        "compare its fingerprint with the box's own (there: `ssh-keygen -lf "
        "/etc/ssh/ssh_host_ed25519_key.pub`), and add it",
    ),
    ("UNPROTECTED PRIVATE KEY", "ssh ignores {identity}, which others may read; chmod 600 {identity}"),
    (
        "Permission denied|Too many authentication failures",
        "expected a login without a password, got: the box does not accept {identity}; put its public half "
        "into ~{user}/.ssh/authorized_keys there (a key with a passphrase must be in ssh-agent)",
    ),
    ("python.*(not found|No such file)", _NO_PYTHON),  # of a shell with another exit status, such as csh
)


@dataclass(frozen=True)
class Login:
    """The login on a box. Without known_hosts, its host key is in the user's own file; without identity, ssh uses the
    user's own keys or ssh-agent.
    """

    host: str
    user: str = "root"
    port: int = 22
    identity: Path | None = None
    known_hosts: Path | None = None

    def __str__(self) -> str:
        return f"{self.user}@{self.host}" + (f" port {self.port}" if self.port != 22 else "")


def command(login: Login, remote: list[str]) -> list[str]:
    """Return the ssh command line that runs `remote` on the box; it ignores ssh's configuration files."""
    options = dict(_OPTIONS)
    if login.known_hosts is not None:
        options |= {"UserKnownHostsFile": _quoted(login.known_hosts), "GlobalKnownHostsFile": "/dev/null"}
    if login.identity is not None:
        options |= {"IdentitiesOnly": "yes", "IdentityFile": _quoted(login.identity)}
    set_so = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    return [
        *("ssh", "-F", "none", "-T", *set_so, "-l", login.user, "-p", str(login.port), "--", login.host),
        shlex.join(remote),
    ]


def missing_files(name: str, login: Login) -> str:
    """Return a problem if a file of the login cannot be read; empty if there is none."""
    for key, path in (("identity", login.identity), ("known_hosts", login.known_hosts)):
        if path is not None and not os.access(path, os.R_OK):
            return f"{name}: {key}: expected a file that can be read, got {path}"
    return ""


def readiness() -> Readiness:
    """Return whether there is an OpenSSH client, and the command that installs it."""
    return Readiness("ssh", shutil.which("ssh") is not None, "no ssh", "apt-get install openssh-client")


def explain(name: str, login: Login, said: str, status: int | None) -> EspbenchError:
    """Return the error of a box that was not reached or that refused.

    said: the output of ssh and the box's helper. status: the exit status of ssh; None if it still runs. The error is a
    UsageError if another attempt would fail too.
    """
    where = f"{name} ({login})"
    if refused := re.findall(r"^espbench(?: launcher)?: (.+)$", said, re.MULTILINE):
        return UsageError(f"{where}: {refused[-1]}")
    lines = list(dict.fromkeys(line.strip() for line in said.splitlines() if line.strip()))
    known = (("", _NO_PYTHON),) if status in _NO_PROGRAM else _KNOWN
    for pattern, remedy in known:
        if re.search(pattern, said):
            return UsageError(f"{where}: " + remedy.format(
                host=login.host, port=login.port, user=login.user, identity=login.identity or "any of your keys",
                known_hosts=login.known_hosts or "~/.ssh/known_hosts", said=f" ({lines[-1]})" if lines else "",
            ))  # fmt: skip
    words = "; ".join(lines[-3:])  # earlier lines may be the box's banner
    return GatewayFailed(f"{where}: cannot be reached: {words or 'ssh gave no reason'}")


def _quoted(path: Path) -> str:
    """Return a path as the value of an option: ssh splits values at spaces and expands %."""
    return '"' + str(path).replace("%", "%%") + '"'
