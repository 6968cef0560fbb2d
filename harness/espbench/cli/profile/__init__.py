# SPDX-License-Identifier: Apache-2.0
"""The command of where instructions go, `profile`: trials made for it, and its tables in the terminal.

Trials are measured as the gate's are, at loads of a base. May import `results`, `plan`, `runs`, `gate`, `profile`
and `cli.gate`.
"""
