# SPDX-License-Identifier: Apache-2.0
"""Reads YAML into values with their places in the file.

`bounded_yaml` limits the size of a hostile file, `reader` reports each mistake with its place, `units` reads
durations, rates and loss goals, and `changing` changes a value in a text. Nothing here knows the meaning of a key.
May import nothing of espbench but its words.
"""
