# SPDX-License-Identifier: Apache-2.0
"""Finds out where the frames went, and proves that those which arrived had been encrypted.

`counters` are read before and after a trial; `path` books each lost frame to a place, `one_gateway` does it
for a single gateway; `encryption` says what they prove; `decryption` opens a captured sample, `readiness` shows
before the first trial that the tunnel does its work. May import `platforms`, `stacks`, `generators` and
`measure.inputs`.
"""
