# SPDX-License-Identifier: Apache-2.0
"""The command line: one module for each command, with its arguments, exit codes and output in the terminal.

The other packages do the work of a command. May import `catalogue`, `this_machine`, `results.*`, `plan.*`,
`platforms.*`, `stacks.daemons`, `generators`, `measure.*`, `procedures.boards`, `runs`, `runs.platform_kinds.*`,
`runs.workers`, `reporting.*`, `cli.bisect`, `cli.finished`, `cli.gate`, `cli.history` and `cli.profile`.
"""
