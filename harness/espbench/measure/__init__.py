# SPDX-License-Identifier: Apache-2.0
"""One trial and what it is worth.

`trial` offers, drains, counts and reads the CPUs; `record` makes the trial's record of it. From `lost` to the
report: `proof.path` counts what was lost, `record` writes it down. `machine` describes the machine a run was
made on. May import `platforms`, `generators` and `measure.*`.
"""
