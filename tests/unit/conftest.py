# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C means what it means at a terminal, also where the tests were begun in the background, which ignores it."""

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
