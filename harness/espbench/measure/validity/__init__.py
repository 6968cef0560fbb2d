# SPDX-License-Identifier: Apache-2.0
"""Decides whether a trial can be trusted, by rules that do not depend on whether it passed.

`faults` returns the reasons against it. `slow_cpu` says when a neighbour made the gateways' CPUs slow. `stalls`,
`standing_still` and `host` determine when the host disturbed it, `network_events` what happened to links and SAs,
`daemons` which IKE daemons died, and `backlog` whether frames were only stored. May import `this_machine`, `stacks`,
`stacks.daemons`, `generators` and `measure.inputs`.
"""
