# SPDX-License-Identifier: Apache-2.0
"""From the text of a YAML file to values that remember where they stood.

`bounded_yaml` keeps a hostile file small, `reader` tells each mistake with its place, `units` reads
durations, rates and loss goals. What a key means is not known here. May import nothing of espbench but its
words.
"""
