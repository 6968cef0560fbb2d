# SPDX-License-Identifier: Apache-2.0
"""Provides devices in virtual time for tests, whole runs of them, and programs that run in their guests."""
