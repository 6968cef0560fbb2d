# SPDX-License-Identifier: Apache-2.0
"""Gateways as emulated PowerQUICC boards in virtual time.

`qemu_e500` builds a pair of them, `e500_guest` starts one, `e500_gateway` speaks to its init. What they are
made of is built in `parts`, from harness/emulator. May import `platforms` and `this_machine`.
"""
