# SPDX-License-Identifier: Apache-2.0
"""Whether a trial may be trusted, whether or not it passed.

`faults` says why not; `stalls`, `standing_still` and `host` tell when the host disturbed it, `network_events`
what happened to links and SAs, `backlog` whether frames were only stored. May import `this_machine`,
`stacks`, `stacks.daemons`, `generators` and `measure.inputs`.
"""
