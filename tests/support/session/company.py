# SPDX-License-Identifier: Apache-2.0
"""Tries what failed beside other tests once more by itself; more than a few such files are not excused.

Tests that tolerate other tests run several at once, on a machine whose CPUs they then have to wait for. A test that
fails there and passes alone did not tolerate this: the summary names it, and it is to be mended or marked `alone`. A
test that fails alone as well is red, and so are failures in more than MOST_FILES files at once: then the machine, or
the change, is broken.
"""

import pytest

OPTION = "--alone-again"
MOST_FILES = 3
TITLE = "failed beside other tests; once more, alone"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of `make test`, which goes with pytest's own --last-failed."""
    parser.addoption(
        OPTION, action="store_true", help=f"refuse to run if the tests are of more than {MOST_FILES} files"
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    """End the session where too much failed to be excused."""
    if not session.config.getoption(OPTION):
        return
    files = {item.path for item in session.items}
    if len(files) > MOST_FILES:
        pytest.exit(
            f"tests of {len(files)} files failed beside others, more than {MOST_FILES}: not tried again", 1
        )


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """Name the tests."""
    return [f"{TITLE}: {item.nodeid}" for item in items] if config.getoption(OPTION) else []
