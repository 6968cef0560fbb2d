# SPDX-License-Identifier: Apache-2.0
"""What only emulated boards have: the driver-level accelerator test, and what a board says of its crypto engine.

May import `catalogue`, `results`, `plan`, `plan.keys`, `plan.resolved`, `platforms`, `platforms.e500` and
`generators`.
"""
