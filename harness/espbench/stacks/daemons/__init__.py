# SPDX-License-Identifier: Apache-2.0
"""What all IKE daemons have in common.

`ike` is a pair of gateways keyed by IKE, `daemon` says what one end is asked for and offers, `builds`,
`packages` and `layers` put a daemon's files onto a gateway, `sa_events` says what it did when;
`attack_packets` and `public_key_speed` serve the tests of IKE. May import `stacks`, `platforms`,
`this_machine` and `catalogue`.
"""
