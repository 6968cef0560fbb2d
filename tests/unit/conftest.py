# SPDX-License-Identifier: Apache-2.0
"""Unit tests: the SEC model's fixtures."""

from support.sec.models import console, make, sec

__all__ = ["console", "make", "sec"]
