# SPDX-License-Identifier: Apache-2.0
"""Defines what is tested, and how it is wired: DUT profiles and topologies.

`profiles` reads dut-profiles/*.yaml, with the keys of emulated `boards` and of `boxes` on a bench; `topology`
reads topologies/*.yaml. May import `plan.reading` and `plan.keys`.
"""
