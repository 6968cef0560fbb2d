# SPDX-License-Identifier: Apache-2.0
"""Reads the user's own files for guests in virtual time.

`additions` reads modules of a kernel and overlays of a guest's root. `own_files` copies files of the user into the
cache of another machine. May import `platforms`, `platforms.virtual.parts` and
`this_machine`.
"""
