# SPDX-License-Identifier: Apache-2.0
"""NPCryptBench: ten cipher kernels, compiled and run on the engines of a network processor.

`compilers` makes programs of harness/network_processor's sources, `machine` runs one, `prices` says what each reference
costs, `proof` checks every output against a known answer, `measure` does all of it for one configuration. `hosted`
makes programs for computers with a C library; `board` runs one on an emulated board. `processes` runs simulators and
boards. May import `this_machine`, `results`, `plan.keys`, `plan.duts`, `platforms`, `platforms.e500`,
`platforms.virtual`, `platforms.virtual.parts` and `npcrypt.ciphers`.
"""
