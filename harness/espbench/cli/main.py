# SPDX-License-Identifier: Apache-2.0
"""The command line: collects the commands, and turns every error into one message and an exit code."""

from __future__ import annotations

import io
import sys
import traceback

import typer
from rich.console import Console

from espbench.cli import (
    build,
    calibrate,
    clean,
    doctor,
    example,
    listing,
    run,
    schema,
    validate,
)
from espbench.cli.bisect import bisect
from espbench.cli.finished import compare, report, verify
from espbench.cli.gate import baseline, check
from espbench.cli.history import history
from espbench.cli.profile import profile
from espbench.errors import EspbenchError, Interrupted, UsageError
from espbench.this_machine import ending, registry
from espbench.version import __version__

app = typer.Typer(
    name="espbench",
    help="Measure how fast an IPsec gateway forwards, at what loss, for how much CPU (RFC 2544).",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run.run)
app.command("validate")(validate.validate)
app.command("schema")(schema.schema)
app.command("report")(report.report)
app.command("verify")(verify.verify)
app.command("compare")(compare.compare)
app.command("check")(check.check)
app.command("baseline")(baseline.baseline)
app.command("bisect")(bisect.bisect)
app.command("history")(history.history)
app.command("profile")(profile.profile)
app.command("doctor")(doctor.doctor)
app.command("list")(listing.listing)
app.command("example")(example.example)
app.command("calibrate")(calibrate.calibrate)
app.command("build")(build.build)
app.command("clean")(clean.clean)


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    if version:
        print(f"espbench {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(UsageError.exit_code)


def main() -> None:
    """Run the command line and exit with a documented exit code (docs/commands.md)."""
    # A terminal may lack characters such as µ, and a path may have bytes that are not text; these are escaped.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    # SIGTERM and a closed terminal end a run as Ctrl-C does: everything is undone, and the run can be resumed.
    ending.listen()
    try:
        code = _command(console)
        ending.deaf()
    except KeyboardInterrupt:  # it came after _command, which catches its own
        code = Interrupted.exit_code
    try:
        registry.undo_the_rest()
    except EspbenchError as error:
        _tell(console, error)
    # Even if the clean-up after a first signal failed, the user has interrupted the command.
    sys.exit(Interrupted.exit_code if ending.heard() else code)


def _command(console: Console) -> int:
    """Run the command, print its error if it has one, and return the exit code."""
    try:
        # Outside standalone mode, `app` catches a typer.Exit and returns its code.
        returned = app(standalone_mode=False)
        return returned if isinstance(returned, int) else 0
    except (KeyboardInterrupt, typer.Abort):
        console.print("interrupted", style="yellow")
        return Interrupted.exit_code
    except EspbenchError as error:
        _tell(console, error)
        return error.exit_code
    except Exception as error:
        # Usage errors of click itself, such as an unknown option or a missing argument, have these methods.
        if hasattr(error, "format_message") and hasattr(error, "show"):
            error.show()
            return UsageError.exit_code
        traceback.print_exc()
        return 1


def _tell(console: Console, error: EspbenchError) -> None:
    for text in (str(error), *getattr(error, "__notes__", [])):
        console.print(text, style="red", markup=False)
