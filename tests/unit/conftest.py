# SPDX-License-Identifier: Apache-2.0
"""Unit tests: the SEC model's fixtures, and charts that are not drawn."""

from support.sec.models import console, make, sec
from support.session.pictures import pictures_by_digest

__all__ = ["console", "make", "pictures_by_digest", "sec"]
