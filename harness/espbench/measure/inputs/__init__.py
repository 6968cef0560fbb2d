# SPDX-License-Identifier: Apache-2.0
"""Has the inputs of a trial: the test set-up, its streams, and the actions on the gateways.

`setup` defines the test set-up and the request for a trial, `traffic` and `esp_peer` make the streams, `actions`
executes the actions, `usual_speed` remembers the speed of the gateways' CPUs. May import `platforms`, `stacks` and
`generators`.
"""
