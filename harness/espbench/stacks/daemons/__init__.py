# SPDX-License-Identifier: Apache-2.0
"""Has the common parts of all IKE daemons.

`ike` is a pair of gateways keyed by IKE; `daemon` is the interface of one end. `builds`, `packages` and `layers`
put a daemon's files onto a gateway. `sa_events` reads from a daemon's log what it did and when, `processes` looks
at its process. `attack_packets` and `public_key_speed` serve the tests of IKE. May import `stacks`, `platforms`,
`this_machine` and `catalogue`.
"""
