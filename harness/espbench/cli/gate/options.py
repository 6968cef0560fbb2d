# SPDX-License-Identifier: Apache-2.0
"""Defines options that all commands that measure share, whether they measure in their own process or in another."""

from __future__ import annotations

from typing import Annotated

import typer

Wait = Annotated[bool, typer.Option("--wait", help="Wait while another measurement uses this machine.")]
