# SPDX-License-Identifier: Apache-2.0
"""Has the inputs of a trial: the test set-up, its streams, and what is done to the gateways meanwhile.

`setup` defines the first, `traffic` and `esp_peer` make the second, `actions` does the third. May import
`platforms`, `stacks` and `generators`.
"""
