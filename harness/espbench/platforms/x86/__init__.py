# SPDX-License-Identifier: Apache-2.0
"""Gateways as x86-64 machines in virtual time, with Debian's own kernel: what is the machine's own.

`qemu_x86` builds a pair of them, `x86_guest` says what is in one, `x86_gateway` sets its ports up,
`own_kernel` and `own_daemon` find what is the user's. May import
`platforms`, `platforms.virtual`, `platforms.virtual.parts` and `this_machine`.
"""
