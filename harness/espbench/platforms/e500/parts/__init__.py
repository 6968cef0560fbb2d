# SPDX-License-Identifier: Apache-2.0
"""Builds what emulated boards consist of, from Debian's sources: kernel, initramfs, QEMU.

`recipe` names the parts and their keys, `sources` fetches, `guest`, `kernel` and `qemu` make one part each,
`build` puts them into the cache. May import `platforms`, `platforms.e500` and `this_machine`.
"""
