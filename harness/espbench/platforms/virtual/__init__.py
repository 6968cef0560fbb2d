# SPDX-License-Identifier: Apache-2.0
"""Gateways as guests in virtual time: what is the same whatever machine is emulated.

`virtual_pair` builds a test bed of them, `virtual_guest` starts one, `virtual_gateway` speaks to its init. What they
are made of is built in `parts`, from harness/emulator. May import `platforms` and `this_machine`.
"""
