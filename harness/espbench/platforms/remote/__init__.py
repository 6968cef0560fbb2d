# SPDX-License-Identifier: Apache-2.0
"""Gateways on real boxes, reached over SSH.

`remote_platform` builds the test bed, `remote_gateway` is one box and `remote_box` the program that runs
there; `labgrid_board` is its power switch and console, in processes of `labgrid_worker`. May import
`platforms` and `this_machine`.
"""
