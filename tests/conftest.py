# SPDX-License-Identifier: Apache-2.0
"""Sets what holds for all tests.

Those that need what is not here are skipped (needs.py), Hypothesis makes up as many examples as are asked for
(examples.py), those that fail show their logs (logs.py), garbage is collected of tests alone (garbage.py), and Ctrl-C
works as at a terminal.
"""

import signal

import pytest

pytest.register_assert_rewrite("support")

from support.session.examples import load_profiles  # noqa: E402
from support.session.garbage import pytest_runtestloop  # noqa: E402
from support.session.logs import pytest_runtest_makereport  # noqa: E402
from support.session.needs import pytest_addoption, pytest_runtest_setup  # noqa: E402

__all__ = ["pytest_addoption", "pytest_runtest_makereport", "pytest_runtest_setup", "pytest_runtestloop"]

# A shell starts a background job with SIGINT ignored, and so would be all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

load_profiles()
