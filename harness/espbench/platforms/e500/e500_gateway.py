# SPDX-License-Identifier: Apache-2.0
"""A gateway that is an e500 guest: it has the driver-level accelerator test, and big-endian integers."""

from __future__ import annotations

from typing import Literal

from espbench.platforms.virtual.virtual_gateway import VirtualGateway


class E500Gateway(VirtualGateway):
    """A `base.Gateway` with a security engine."""

    byte_order: Literal["little", "big"] = "big"
