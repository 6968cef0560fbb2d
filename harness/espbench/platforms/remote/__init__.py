# SPDX-License-Identifier: Apache-2.0
"""Gateways on real boxes, reached over SSH.

`remote_platform` builds the test bed, `remote_gateway` controls one box, `remote_box` is the program that runs on the
box, `ssh` makes the connection, `cpu_tick` says how accurate the CPU figure of a box is. `remote_power` switches a box
off and on through `labgrid_board`, its power switch and console, in processes of `labgrid_worker`. May import
`platforms` and `this_machine`.
"""
