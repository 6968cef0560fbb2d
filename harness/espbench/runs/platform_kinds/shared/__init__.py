# SPDX-License-Identifier: Apache-2.0
"""Has what the kinds of platform share.

`platform` is the interface, which each kind implements. `from_profile` has the common parts of platforms that espbench
builds; `addressing` and `link_errors` give them addresses and errors of links in the form that they take.
`stack_files` finds the files that a stack needs, `users_files` compares the user's own files on several machines, and
`labgrid_checks` checks boxes before anything is opened. May import `this_machine`, `plan`, `plan.reading`, `plan.keys`,
`plan.duts`, `plan.resolved`, `platforms`, `platforms.remote`, `platforms.virtual.own`, `platforms.virtual.parts` and
`stacks.daemons`.
"""
