# SPDX-License-Identifier: Apache-2.0
"""Prints the manual page espbench(1), made from what the commands say of themselves: `man_page.py > espbench.1`."""

from __future__ import annotations

import re
from typing import Any

import typer

from espbench.cli.main import app
from espbench.version import __version__

EXIT_CODES = {
    0: "Every case has a valid result.",
    1: "An unexpected error, a defect of espbench.",
    2: "Bad usage, a mistake in the plan, or a base that is missing or foreign; the message says where.",
    3: "The run is whole, but some case is LOWER_BOUND, INVALID, UNRESOLVABLE or VIOLATED, or a figure is INVALID.",
    4: "The machine lacks something, or another measurement has its CPUs; the message says what to do.",
    5: "espbench check found a regression.",
    130: "Interrupted; a run can be resumed.",
}


def main() -> None:
    """Write the page to standard output."""
    group: Any = typer.main.get_command(app)
    print("\n".join(page(group)))


def page(group: Any) -> list[str]:
    """Return the lines of the page, in the man(7) macros."""
    lines = [
        f'.TH ESPBENCH 1 "" "espbench {__version__}" "User Commands"',
        ".SH NAME",
        "espbench \\- an RFC 2544 test harness for IPsec gateways",
        ".SH SYNOPSIS",
        ".B espbench",
        "\\fICOMMAND\\fR [\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]",
        ".SH DESCRIPTION",
        escaped(group.help),
        "A plan, a YAML file, says what is measured; \\fBespbench example\\fR prints some, and",
        "\\fBespbench schema\\fR describes every key.",
        ".SH COMMANDS",
    ]
    for name, command in group.commands.items():
        words = [f"\\fI{p.name.upper()}\\fR" for p in arguments(command)]
        lines += [f".SS espbench {name} {' '.join(words)}".rstrip(), escaped(command.help)]
        for parameter in [*arguments(command), *options(command)]:
            lines += [".TP", title(parameter), escaped(parameter.help or "")]
    lines.append(".SH EXIT STATUS")
    for code, meaning in EXIT_CODES.items():
        lines += [".TP", str(code), escaped(meaning)]
    return lines


def arguments(command: Any) -> list[Any]:
    """Return what stands without a name."""
    return [p for p in command.params if p.param_type_name == "argument"]


def options(command: Any) -> list[Any]:
    """Return what a user is told of."""
    return [p for p in command.params if p.param_type_name == "option" and not p.hidden]


def title(parameter: Any) -> str:
    """Return how a parameter is written on the command line, in bold."""
    if parameter.param_type_name == "argument":
        return f"\\fI{parameter.name.upper()}\\fR"
    names = ", ".join(f"\\fB{escaped(name)}\\fR" for name in parameter.opts)
    return names if parameter.is_flag else f"{names} \\fI{parameter.name.upper()}\\fR"


def escaped(text: str) -> str:
    """Return text that troff sets as it is."""
    joined = re.sub(r"\s+", " ", text or "").strip().replace("\\", "\\\\").replace("-", "\\-")
    return f"\\&{joined}" if joined[:1] in (".", "'") else joined


if __name__ == "__main__":
    main()
