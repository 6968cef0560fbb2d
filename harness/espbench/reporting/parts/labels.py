# SPDX-License-Identifier: Apache-2.0
"""The labels of figures that are short or virtual, and what a document of figures in virtual time says at its top."""

from __future__ import annotations

SHORT = "short trials: not RFC 2544"
VIRTUAL = "virtual: instructions are counted; caches, branches and the width of SIMD are not known"
ABOUT_VIRTUAL = (
    "The gateways' clock counts the instructions that they execute; it knows no caches, no branch prediction and no "
    "width of SIMD. The measured figure is instructions per frame, exact to the last one. Frames per second follow "
    "from the time that the profile assumes for each instruction."
)
