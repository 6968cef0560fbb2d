# SPDX-License-Identifier: Apache-2.0
"""Decides for `espbench check`, `baseline` and `bisect` whether a change costs instructions, and which commit did.

A `Base` is read from a run (`from_run`, with `low_loads`) or from a file that users commit (`baseline_file`).
`conditions` defines when it is valid. In virtual time, `from_check` reads the trials at the base's loads and `judging`
compares them with the base, by `limits`; in real time, `real_time` uses the statistics of a comparison. `verdict` is
the result.
May import `results` and `comparison.sorting`.
"""
