# SPDX-License-Identifier: Apache-2.0
"""Reads YAML into values that remember their place in the file.

`bounded_yaml` limits the size of a hostile file, `reader` reports each mistake with its place, `units` reads
durations, rates and loss goals. `changing` puts another value into a text. Nothing here knows what a key
means. May import nothing of espbench but its words.
"""
