# SPDX-License-Identifier: Apache-2.0
"""The command line: one module a command, with its arguments, exit codes and what is seen in the terminal.

What a command does is done by the parts below. May import `catalogue`, `this_machine`, `results`, `plan.*`,
`platforms.*`, `stacks.daemons`, `generators`, `measure.*`, `procedures.boards`, `runs`, `runs.workers`,
`comparison.*`, `reporting.*`, `cli.gate`, `cli.history` and `cli.profile`.
"""
