# SPDX-License-Identifier: GPL-2.0-only
"""Defines a failure and what the user can do about it, as in the protocol's `error`."""

from __future__ import annotations


class Failure(Exception):
    """A command that could not be done: message and hint."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
