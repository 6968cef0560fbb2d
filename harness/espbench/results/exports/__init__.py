# SPDX-License-Identifier: Apache-2.0
"""Writes results for other programs: JUnit XML, one row per case, and the progress of a run for Prometheus.

May import `results` and what that may import.
"""
