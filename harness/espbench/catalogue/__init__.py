# SPDX-License-Identifier: Apache-2.0
"""Lists as data what a plan can choose from: stacks, ESP suites, and how a board's kernel drives its crypto engine.

Plans are checked against these lists, stacks are set up from them, and reports use their names. So all parts that do
this may import this folder. Begin here to add a stack or a suite. May import of espbench only its words.
"""
