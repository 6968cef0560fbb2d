# SPDX-License-Identifier: Apache-2.0
"""Traffic generators behind one interface (`base`): the native one, Scapy, TRex.

`native` and `scapy` are clients of processes that speak one protocol; the `trex` modules speak TRex's own.
`choose` makes one by its name. May import `platforms` and `this_machine`.
"""
