# SPDX-License-Identifier: Apache-2.0
"""Decides for `espbench check`, `baseline` and `bisect` whether a change costs instructions, and which commit did.

A `Base` is read from a run (`from_run`) or from the file that one commits (`baseline_file`). `conditions` says for what
it is valid. `judging` compares trials at its loads (`from_check`) with it, by `limits`; `real_time` does so with the
statistics of a comparison. May import `results` and `comparison.sorting`.
"""
