# SPDX-License-Identifier: Apache-2.0
"""Prints a report's page as PDF with a headless Chromium."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from espbench.errors import EspbenchError, MachineLacks

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless", "--disable-gpu", "--no-first-run", "--no-default-browser-check", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-pdf-header-footer",
    "--generate-pdf-document-outline",
    # The window is landscape A4 without margins, in CSS pixels, so that charts are drawn as wide as they are printed.
    "--window-size=1032,730",
    # Virtual time of the page stands still while scripts run, so Chromium prints when all charts are drawn.
    "--virtual-time-budget=20000",
)  # fmt: skip
_PATIENCE_S = 600.0
_HEAD = b"%PDF-"
_MOST_SAID = 600


def browser() -> str:
    """Return Chromium's path; raise MachineLacks if it is not installed."""
    browser_path = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if browser_path is None:
        raise MachineLacks(
            "a PDF is printed by Chromium, which is not installed",
            "apt-get install --no-install-recommends chromium",
        )
    return browser_path


def print_page(page: Path, pdf: Path) -> None:
    """Print an HTML file with its charts into a PDF of A4 pages with an outline; never leave an incomplete file.

    Raise MachineLacks without Chromium, and EspbenchError if it prints nothing. The page cannot load anything from
    outside (its Content-Security-Policy), and Chromium gets a temporary profile.
    """
    program = browser()
    # Chromium cannot use its sandbox as root; the page is espbench's own.
    flags = [*_FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with tempfile.TemporaryDirectory(prefix="espbench-print-", ignore_cleanup_errors=True) as folder:
        made = Path(folder) / "page.pdf"
        of_its_own = [f"--user-data-dir={folder}/profile", f"--print-to-pdf={made}"]
        said = _run([program, *flags, *of_its_own, page.resolve().as_uri()])
        if not made.exists() or made.read_bytes()[: len(_HEAD)] != _HEAD:
            raise EspbenchError(
                f"{pdf}: not written\n  expected: {program} to print {page}\n"
                f"  got: {said or 'no file, and no word of why'}\n"
                "  what to do: print report.html from a browser of yours; its pages are the same"
            )
        partial = pdf.with_name(f".{pdf.name}.{os.getpid()}.tmp")
        try:
            shutil.copyfile(made, partial)
            partial.replace(pdf)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise EspbenchError(f"{pdf}: cannot write: {error.strerror}") from error


def _run(argv: list[str]) -> str:
    """Run a program to its end and return the end of its stderr; kill all processes that it started."""
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _, said = process.communicate(timeout=_PATIENCE_S)
    except subprocess.TimeoutExpired:
        return f"no end within {_PATIENCE_S:g} s"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return said.decode(errors="replace").strip()[-_MOST_SAID:]
