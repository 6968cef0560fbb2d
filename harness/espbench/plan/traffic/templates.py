# SPDX-License-Identifier: Apache-2.0
"""Renders the Scapy expressions of traffic profiles as header bytes, by the separate Scapy program."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from functools import cache

from espbench.errors import EspbenchError
from espbench.plan.reading.units import Expected
from espbench.plan.traffic.headers import Header, NotAHeader, header_of

_PROGRAM = "espbench_scapy.render"
_PATIENCE_S = 300.0


class BadTemplate(Expected):
    """An expression that is not a template: expected, got, remedy."""

    def __init__(self, expected: str, got: str, remedy: str) -> None:
        super().__init__(expected, remedy)
        self.got = got


@cache
def rendered(expression: str) -> Header:
    """Return the header that a Scapy expression describes. Raise BadTemplate."""
    # It runs in a separate process because of its licence, and because a user's expression must not access
    # this process's memory.
    done = subprocess.run(
        [sys.executable, "-m", _PROGRAM],
        input=json.dumps({"expressions": [expression]}),
        capture_output=True,
        text=True,
        check=False,
        timeout=_PATIENCE_S,
    )
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise EspbenchError(f"Scapy could not render a template: {said[0]}")
    (answer,) = json.loads(done.stdout)["headers"]
    if "bytes" not in answer:
        raise BadTemplate(answer["expected"], answer["got"], answer["remedy"])
    try:
        return header_of(base64.b64decode(answer["bytes"]))
    except NotAHeader as error:
        raise BadTemplate("headers a generator can fill", str(error), "see docs/traffic.md") from None
