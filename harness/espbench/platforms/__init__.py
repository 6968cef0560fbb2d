# SPDX-License-Identifier: Apache-2.0
"""Has the platforms, on which gateways run: their interface (`base`), their common parts, and the two small platforms.

`netns` makes gateways of namespaces of this kernel, `external` is for boxes that espbench did not build. Guests, boxes
over SSH and emulated boards have folders. `agent` runs inside a gateway, `channel` is the connection to it. A platform
knows neither tests nor stacks. May import `this_machine`.
"""
