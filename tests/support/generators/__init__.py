# SPDX-License-Identifier: Apache-2.0
"""Provides generators for tests: real ones on real links, a simulated TRex server, and streams with their counts."""
