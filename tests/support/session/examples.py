# SPDX-License-Identifier: Apache-2.0
"""How many examples Hypothesis makes up for each test: `make test-all` asks for as many as the tests say, else fewer.

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
    """Of `number` that a thorough test makes, as many as the profile asks for; for @settings(max_examples=…)."""
    asked: int = hypothesis.settings().max_examples
    return max(min(number, LEAST), number * asked // THOROUGH)
