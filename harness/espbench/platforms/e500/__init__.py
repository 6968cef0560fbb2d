# SPDX-License-Identifier: Apache-2.0
"""Gateways as emulated PowerQUICC boards in virtual time: the parts that are specific to these boards.

`qemu_e500` builds a test bed of boards, `e500_guest` defines a board's contents and QEMU's command line, `e500_gateway`
sends requests to it, `own_kernel` checks the user's kernel, modules and overlay. May import `platforms`,
`platforms.virtual`, `platforms.virtual.own`, `platforms.virtual.parts` and `this_machine`.
"""
