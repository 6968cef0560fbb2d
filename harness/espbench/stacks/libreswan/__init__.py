# SPDX-License-Identifier: Apache-2.0
"""libreswan's pluto: its process, configuration, events and status.

May import `stacks.daemons`, `platforms` and `catalogue`.
"""
