# SPDX-License-Identifier: Apache-2.0
"""The command `profile`, which shows where instructions go: it measures trials and prints tables in the terminal.

Trials are measured like those of the gate, at the loads of a base. May import `results`, `plan`, `runs`, `gate`,
`profile` and `cli.gate`.
"""
