# SPDX-License-Identifier: GPL-2.0-only
"""Defines the failure of a command, with what the user can do about it, as in the protocol's event `error`."""

from __future__ import annotations


class Failure(Exception):
    """A command that failed, with a message and a hint."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
