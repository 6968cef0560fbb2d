# SPDX-License-Identifier: Apache-2.0
"""Gateways as User-Mode Linux guests.

`uml_platform` builds a pair of them, `uml_guest` is one, `uml_kernel` finds the kernels, `cpu_group` tells
how long others kept the guests from their CPUs. May import `platforms` and `this_machine`.
"""
