# SPDX-License-Identifier: Apache-2.0
"""Runs a trial, and judges and records it.

`trial` sends the frames, waits for late ones, reads the counters and the gateways' CPU times; `record` makes the
trial's record from these readings. `proof.path` finds the place where each frame was lost. `machine` describes the
machine on which a run was made. May import `platforms`, `generators` and `measure.*`.
"""
