# SPDX-License-Identifier: Apache-2.0
"""A test on real traffic that failed while the host stood still is run again, and the summary says so.

Such a test states exact counts, and a host that takes its CPUs away for 20 ms and more breaks them: the tester cannot
send, or a ring overflows. That is only believed where it was measured: without a stall a failure stands at once, and
after three attempts it stands anyway. Only a host that stood still for a 50th of the time in each of them cannot
run such a test at all: then it is skipped, with that reason; so is a test for which espbench itself said INVALID,
again and again, while the host stood still now and then. Tests in virtual time are none of these: nothing of the
host may show there, so a failure stands.
"""

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryFile

import pytest
from _pytest.runner import runtestprotocol

ATTEMPTS = 3
UNFIT = 0.02
PATIENCE_S = 600  # no further attempt after that
WATCH = Path(__file__).parent.parent / "fixtures/stall_watch.py"


class Stalls:
    """The stalls that a process of its own writes down."""

    def __init__(self) -> None:
        self._file = TemporaryFile("a+")  # noqa: SIM115 closed in close(); appending, since reading moves the offset
        self._process = subprocess.Popen(
            [sys.executable, str(WATCH)], stdin=subprocess.PIPE, stdout=self._file, start_new_session=True
        )

    def since(self, start_ns: int) -> list[float]:
        """Milliseconds of each that ended since then (CLOCK_MONOTONIC)."""
        self._file.seek(0)
        lines = [line.split() for line in self._file.read().splitlines()]
        return [int(late) / 1e6 for end, late in lines if int(end) >= start_ns]

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()
        self._file.close()


STALLS = pytest.StashKey[Stalls]()
AGAIN = pytest.StashKey[list[str]]()
# Files whose fixtures could not be made for that reason: pytest keeps the failure for the file's other tests.
UNFIT_FILES = pytest.StashKey[dict[Path, str]]()


def _stalls(config: pytest.Config) -> Stalls:
    """Watched from the first test on: this file is read after the session's start."""
    if STALLS not in config.stash:
        config.stash[STALLS] = Stalls()
        config.add_cleanup(config.stash[STALLS].close)
    return config.stash[STALLS]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Runs the test until it passes, fails undisturbed, or has failed ATTEMPTS times."""
    if item.get_closest_marker("virtual_time"):
        return None  # pytest's own way: once
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    watched = _stalls(item.config)
    unfit_files = item.config.stash.setdefault(UNFIT_FILES, {})
    first_ns = time.monotonic_ns()
    unfit = []
    for attempt in range(1, ATTEMPTS + 1):
        start_ns = time.monotonic_ns()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        stalls = watched.since(start_ns)
        unfit.append(1e6 * sum(stalls) / (time.monotonic_ns() - start_ns))
        failed = next((report for report in reports if report.failed), None)
        if failed is None:
            break
        if failed.when == "setup" and item.path in unfit_files:
            _skip(item, reports, unfit_files[item.path])
            break
        unsettled = "Unsettled" in _last_line(failed)  # espbench has tried often enough
        last = unsettled or attempt == ATTEMPTS or time.monotonic_ns() - first_ns > PATIENCE_S * 1e9
        if last and min(unfit) > (0 if unsettled else UNFIT):
            reason = f"the host stood still for {100 * min(unfit):.1f} % of the time, {attempt} times"
            if failed.when == "setup":
                unfit_files[item.path] = reason
            _skip(item, reports, reason)
        if last or not stalls:
            break
        item.config.stash.setdefault(AGAIN, []).append(
            f"{item.nodeid}: {len(stalls)} stalls, the longest {max(stalls):.0f} ms; {_last_line(failed)}"
        )
        # All fixtures are made anew: what a failed set-up left is cached otherwise.
        item.session._setupstate.teardown_exact(None)
        item._initrequest()  # type: ignore[attr-defined]
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _skip(item: pytest.Item, reports: list[pytest.TestReport], reason: str) -> None:
    for report in reports:
        if report.failed:
            item.config.stash.setdefault(AGAIN, []).append(
                f"{item.nodeid}: skipped, {reason}; {_last_line(report)}"
            )
            report.outcome = "skipped"
            report.longrepr = (str(item.path), item.location[1] or 0, f"Skipped: {reason}")


def _last_line(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return crash.message.splitlines()[0] if crash else f"{report.when} failed"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Names the tests that were run again."""
    again = terminalreporter.config.stash.get(AGAIN, [])
    if again:
        terminalreporter.section("failed while the host stood still: run again, or skipped")
    for line in again:
        terminalreporter.write_line(line)
