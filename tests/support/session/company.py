# SPDX-License-Identifier: Apache-2.0
"""Runs tests that failed beside other tests once more alone, unless they are of more than a few files.

Most tests run in parallel with others, and then have to wait for CPUs. A test that fails there and passes alone does
not tolerate this: the summary names it, and it must be fixed, or marked `alone`. A test that fails alone too is red.
Failures in more than MOST_FILES files at once are red too: then the machine, or the change, is broken.
"""

import pytest

OPTION = "--alone-again"
MOST_FILES = 3
TITLE = "failed beside other tests; once more, alone"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that `make test` uses together with pytest's own --last-failed."""
    parser.addoption(
        OPTION, action="store_true", help=f"refuse to run if the tests are of more than {MOST_FILES} files"
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    """End the session if tests of too many files failed."""
    if not session.config.getoption(OPTION):
        return
    files = {item.path for item in session.items}
    if len(files) > MOST_FILES:
        pytest.exit(
            f"tests of {len(files)} files failed beside others, more than {MOST_FILES}: not tried again", 1
        )


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """Name the tests that are run again."""
    return [f"{TITLE}: {item.nodeid}" for item in items] if config.getoption(OPTION) else []
