# SPDX-License-Identifier: Apache-2.0
"""Has the tests that only emulated hardware has.

These are the driver-level accelerator test, bytes over the bus, what a board says of its crypto engine, and the
cipher kernels of network processors. May import `catalogue`, `results`, `plan`, `plan.keys`, `plan.duts`,
`plan.resolved`, `platforms`, `platforms.e500`, `npcrypt`, `generators`, `measure.inputs` and `procedures`.
"""
