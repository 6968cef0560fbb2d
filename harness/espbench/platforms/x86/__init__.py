# SPDX-License-Identifier: Apache-2.0
"""Gateways as x86-64 machines in virtual time, with Debian's kernel: the parts that are specific to this machine.

`qemu_x86` builds a test bed of such machines, `x86_guest` defines the machine's contents and QEMU's command line,
`x86_gateway` sets its ports up. `own_kernel` and `own_daemon` use the user's own kernel and daemon. May import
`platforms`, `platforms.virtual`, `platforms.virtual.own`, `platforms.virtual.parts` and `this_machine`.
"""
