# SPDX-License-Identifier: Apache-2.0
"""Holds the version of espbench, in a module of its own, so that no part needs to import the package `espbench`."""

__version__ = "0.1.0"
