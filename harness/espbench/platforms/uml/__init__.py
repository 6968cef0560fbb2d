# SPDX-License-Identifier: Apache-2.0
"""Gateways as User-Mode Linux guests.

`uml_platform` builds a test bed of guests, `uml_guest` starts one, `beat` wakes it if a signal was lost, `uml_kernel`
finds the kernels. `cpu_group` measures how long other programs kept the guests from their CPUs. `crypto_api` executes
the driver-level test. May import `platforms` and `this_machine`.
"""
