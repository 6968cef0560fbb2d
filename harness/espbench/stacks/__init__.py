# SPDX-License-Identifier: Apache-2.0
"""Has the IPsec implementations that gateways run: the interface of a stack (`base`), and the stacks without a daemon.

`plain` is the baseline, `xfrm` the kernel's ESP with static keys, `lean_esp` espbench's own ESP on emulated boards.
All stacks use `netlink_xfrm`, `policies` and `read_back` to configure the kernel's ESP and to read it back. Stacks with
an IKE daemon have folders. A stack does not know whether its gateway is a namespace, a guest or a box. May import
`platforms` and `catalogue`.
"""
