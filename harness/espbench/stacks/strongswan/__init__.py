# SPDX-License-Identifier: Apache-2.0
"""strongSwan's charon: its process, configuration, events and status, and ESP by charon in user space (`user_space`).

May import `stacks`, `stacks.daemons`, `platforms` and `catalogue`.
"""
