# SPDX-License-Identifier: Apache-2.0
"""Has the IPsec implementations that gateways run: the interface of a stack (`base`), and the stacks without a daemon.

`plain` is the baseline, `xfrm` the kernel's ESP with static keys; `netlink_xfrm`, `policies` and `read_back`
are the kernel's ESP as all stacks need it. Stacks with an IKE daemon have folders. A stack does not know
whether its gateway is a namespace, a guest or a box. May import `platforms` and `catalogue`.
"""
