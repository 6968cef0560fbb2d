# SPDX-License-Identifier: Apache-2.0
"""Sets the number of Hypothesis examples of a test: with `make test-all` the number that the test states, else fewer.

pytest --hypothesis-profile thorough tests/unit        all examples
"""

import hypothesis

QUICK, THOROUGH = 25, 100  # for a test that states no number
LEAST = 10  # at least this many for a test that states a number


def load_profiles() -> None:
    """Use the quick profile unless pytest's options name another; no profile has deadlines, as a host may be busy."""
    patient = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
    hypothesis.settings.register_profile("quick", patient, max_examples=QUICK)
    hypothesis.settings.register_profile("thorough", patient, max_examples=THOROUGH)
    hypothesis.settings.load_profile("quick")


def examples(number: int) -> int:
    """Return the number of examples in this profile, for @settings(max_examples=…); number: that of a thorough test."""
    asked: int = hypothesis.settings().max_examples
    return max(min(number, LEAST), number * asked // THOROUGH)
