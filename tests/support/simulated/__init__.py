# SPDX-License-Identifier: Apache-2.0
"""Simulates devices under test by arithmetic, for tests of searches, procedures, comparisons and drivers of workers."""
