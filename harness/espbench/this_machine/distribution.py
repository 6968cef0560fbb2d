# SPDX-License-Identifier: Apache-2.0
"""Says which Debian this machine has, whether it can install Debian's packages, and where another release's are.

espbench knows only Debian's package names. The archive of a Debian release has older releases too, as other suites.
"""

from __future__ import annotations

import platform
import re
import shutil

# Suites of a release, or of whatever release is the stable one at the time, and so on.
_KINDS = r"(?:-updates|-security)?"
_ROLES = ("stable", "testing", "unstable", "sid")
_LINE = re.compile(r"^(\s*deb(?:-src)?\s+(?:\[[^\]]*\]\s+)?\S+\s+)(\S+)(\s.*)$")
# A field may go on in lines that begin with a blank.
_SUITES = re.compile(r"^(Suites:)(.*(?:\n[ \t].*)*)$", re.MULTILINE | re.IGNORECASE)


def without_debian_packages() -> str:
    """Return the name of this machine's distribution if apt-get cannot install Debian's packages on it; else ""."""
    return "" if shutil.which("apt-get") else _name(_os_release())


def made_from_debian() -> str:
    """Return the name of this machine's distribution if it has apt-get, but is not Debian itself; else "".

    It may call some of Debian's packages otherwise, and its archives do not have Debian's releases.
    """
    known = _os_release()
    return _name(known) if shutil.which("apt-get") and known.get("ID") != "debian" else ""


def debian_codename() -> str:
    """Return the codename of the Debian that this machine has; empty if it has another system."""
    known = _os_release()
    return known.get("VERSION_CODENAME", "") if known.get("ID") == "debian" else ""


def _os_release() -> dict[str, str]:
    """Return what this machine says of its distribution; empty if it says nothing."""
    try:
        return platform.freedesktop_os_release()
    except OSError:  # the file does not exist
        return {}


def _name(known: dict[str, str]) -> str:
    return known.get("PRETTY_NAME", "this system")


def with_release(text: str, suffix: str, here: str, wanted: str) -> str:
    """Return an apt sources file (.sources or .list) of the Debian release `here`, changed so that it names `wanted`.

    Entries with other suites are left out; they are mostly archives of programs that are not Debian's. The file stays
    as it is if both are the same release, or if `here` is empty: no Debian.
    """
    if here in ("", wanted):
        return text
    if suffix == ".sources":
        stanzas = [_stanza(stanza, here, wanted) for stanza in re.split(r"\n\s*\n", text)]
        return "\n\n".join(stanza for stanza in stanzas if stanza)
    lines = [_line(line, here, wanted) for line in text.splitlines()]
    return "".join(f"{line}\n" for line in lines if line)


def _stanza(stanza: str, here: str, wanted: str) -> str:
    named = _SUITES.search(stanza)
    suites = [_suite(word, here, wanted) for word in named[2].split()] if named else []
    kept = " ".join(dict.fromkeys(suite for suite in suites if suite))
    return _SUITES.sub(rf"\1 {kept}", stanza) if kept else ""


def _line(line: str, here: str, wanted: str) -> str:
    parts = _LINE.match(line)
    suite = _suite(parts[2], here, wanted) if parts else ""
    return f"{parts[1]}{suite}{parts[3]}" if parts and suite else ""


def _suite(word: str, here: str, wanted: str) -> str:
    """Return the suite that replaces one of this machine's; empty if none does."""
    name = "|".join(map(re.escape, (here, wanted, *_ROLES)))
    named = re.fullmatch(rf"(?:{name})({_KINDS})/?", word)
    return f"{wanted}{named[1]}" if named else ""
