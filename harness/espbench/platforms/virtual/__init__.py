# SPDX-License-Identifier: Apache-2.0
"""Gateways as guests in virtual time: the parts that do not depend on the emulated machine.

`virtual_pair` builds a test bed of guests, `virtual_guest` starts one guest, `virtual_gateway` sends requests to its
init. `parts` builds the guests' kernels, programs and QEMU from harness/emulator. May import `platforms` and
`this_machine`.
"""
