# SPDX-License-Identifier: Apache-2.0
"""Lists what a plan can choose from, as data: stacks, ESP suites, and how a board's kernel drives its crypto engine.

Plans are checked against these lists, stacks are set up by them, and reports use their names. So this folder is
below the parts that do this. Begin here to add a stack or a suite. May import nothing of espbench but its words.
"""
