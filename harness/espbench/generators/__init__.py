# SPDX-License-Identifier: Apache-2.0
"""Traffic generators with one interface (`base`): the native one, Scapy, TRex.

`native` and `scapy` are clients of processes with a common protocol; the `trex` modules use TRex's own protocol.
`choose` makes a generator by its name. May import `platforms` and `this_machine`.
"""
