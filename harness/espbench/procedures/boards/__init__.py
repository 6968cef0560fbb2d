# SPDX-License-Identifier: Apache-2.0
"""Has the tests of emulated hardware.

These are the driver-level accelerator test (also of a UML guest), the test of the public-key unit, bytes over the bus,
the read-back of a board's crypto engine, and the cipher kernels of network processors and boards. May import
`catalogue`, `this_machine`, `results`, `plan`, `plan.keys`, `plan.duts`, `plan.resolved`, `platforms`,
`platforms.e500`, `platforms.uml`, `platforms.virtual`, `platforms.virtual.parts`, `npcrypt`, `generators`,
`measure.inputs`, `measure.validity` and `procedures`.
"""
