# SPDX-License-Identifier: Apache-2.0
"""Builds the parts of guests in virtual time from Debian's packages: kernel, initramfs, userland and QEMU.

`recipe` defines the parts and their keys, `sources` and `packages` fetch packages. `guest`, `kernel`, `x86_kernel`,
`userland`, `strongswan` and `qemu` make one part each. `build` puts the parts into the cache, `copies` into the cache
of another machine. `kits` lists the parts of each kind of guest. May import `platforms`, `platforms.virtual` and
`this_machine`.
"""
