# SPDX-License-Identifier: Apache-2.0
"""Builds what guests in virtual time consist of, from Debian's packages: kernel, initramfs, userland, QEMU.

`recipe` names the parts and their keys, `sources` and `packages` fetch, `guest`, `kernel`, `x86_kernel`, `userland`
and `qemu` make one part each, `build` puts them into the cache, `copies` into that of another machine, `kits` says
which guest is made of which. `own_files` copies files of the user's in the same way. May import `platforms`,
`platforms.virtual` and `this_machine`.
"""
