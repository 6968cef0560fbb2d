# SPDX-License-Identifier: Apache-2.0
"""Has a file for each kind of platform: how gateways of this kind are made from a plan and a DUT profile.

`table` lists the kinds; a new platform gets a file here and a row there. In real time: `namespaces`, `uml_guests`,
`boxes`, and `external` for boxes that espbench did not build. In virtual time: `boards` and `x86_machines`; as
`lone_boards` and `network_processors`, they run cipher kernels without a network. `shared` has their interface and
their common parts. May import `this_machine`, `plan`, `plan.keys`, `plan.duts`, `platforms.*`, `stacks`,
`stacks.daemons`, `npcrypt`, `generators`, `procedures.boards` and `runs.platform_kinds.shared`.
"""
