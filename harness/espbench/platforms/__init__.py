# SPDX-License-Identifier: Apache-2.0
"""Has the platforms, where gateways run: what every platform offers (`base`), what they share, and the two small ones.

`netns` are namespaces of this kernel, `external` is boxes that espbench did not build; guests, boxes over SSH
and emulated boards have a folder each. `agent` runs inside a gateway, `channel` speaks to it. A platform does
not know what a test is, nor what a stack is. May import `this_machine`.
"""
