# SPDX-License-Identifier: Apache-2.0
"""Determines where frames were lost, and proves that the frames that arrived had been encrypted.

`counters` are read before and after a trial. `path` books each lost frame to a place, `one_gateway` does so for a
single gateway. `encryption` judges what the counters prove, `decryption` decrypts a captured sample, and `readiness`
shows before the first trial that the tunnel works. May import `platforms`, `stacks`, `generators` and
`measure.inputs`.
"""
