# SPDX-License-Identifier: Apache-2.0
"""Chooses how many examples Hypothesis makes up for a test: `make test-all` as many as the test says, else fewer.

pytest --hypothesis-profile thorough tests/unit        all of them
"""

import hypothesis

QUICK, THOROUGH = 25, 100  # of a test that says nothing
LEAST = 10  # of one that says how many


def load_profiles() -> None:
    """Let the quick profile hold until pytest is asked for another. A busy host is no fault of what is tested."""
    patient = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
    hypothesis.settings.register_profile("quick", patient, max_examples=QUICK)
    hypothesis.settings.register_profile("thorough", patient, max_examples=THOROUGH)
    hypothesis.settings.load_profile("quick")


def examples(number: int) -> int:
    """Return how many examples the profile asks for, of `number` in a thorough test; for @settings(max_examples=…)."""
    asked: int = hypothesis.settings().max_examples
    return max(min(number, LEAST), number * asked // THOROUGH)
