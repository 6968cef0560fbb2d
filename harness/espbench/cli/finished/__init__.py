# SPDX-License-Identifier: Apache-2.0
"""The commands that read finished runs and measure nothing: `report`, `compare` and `verify`.

May import `plan`, `plan.resolved`, `results`, `measure.inputs`, `procedures`, `runs`, `comparison`, `comparison.*`,
`reporting` and `reporting.*`.
"""
