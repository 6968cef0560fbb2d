# SPDX-License-Identifier: Apache-2.0
"""What there is to choose from, as data: stacks, ESP suites, and how a board's kernel drives its crypto engine.

A plan is checked against it, a stack is set up by it, and a report is read by it; so it is below all of them.
A new stack or suite begins here. May import nothing of espbench but its words.
"""
