# SPDX-License-Identifier: Apache-2.0
"""The version of espbench; in a module of its own, so that no part imports the package above it."""

__version__ = "0.1.0"
