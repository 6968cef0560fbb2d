# SPDX-License-Identifier: Apache-2.0
"""Gateways as emulated PowerQUICC boards in virtual time: what is the board's own.

`qemu_e500` builds a pair of them, `e500_guest` says what is in one, `e500_gateway` asks it, `own_kernel` looks into the
user's kernel. May import `platforms`, `platforms.virtual`, `platforms.virtual.parts` and `this_machine`.
"""
