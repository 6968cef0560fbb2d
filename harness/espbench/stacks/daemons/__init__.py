# SPDX-License-Identifier: Apache-2.0
"""Has the common parts of all IKE daemons.

`ike` is a stack with an IKE daemon on each gateway; `daemon` is the interface of one daemon. `builds`, `packages` and
`layers` put a daemon's files onto a gateway. `credentials` and `seeded_rsa` make PSKs, keys and certificates.
`sa_events` reads the events of SAs and their times from a daemon's log, `processes` reads the state of its process.
`attack_packets` and `public_key_speed` serve the tests of IKE. May import `stacks`, `platforms`, `this_machine` and
`catalogue`.
"""
