# SPDX-License-Identifier: Apache-2.0
"""Defines what is tested, and how it is wired: DUT profiles and topologies.

`profiles` reads dut-profiles/*.yaml. `boards`, `machines`, `processors` and `boxes` have the keys of one platform
each. `topology` reads topologies/*.yaml. May import `plan.reading` and `plan.keys`.
"""
