# SPDX-License-Identifier: Apache-2.0
"""Has the labels of figures of short trials or virtual time, and the text at the top of documents in virtual time."""

from __future__ import annotations

SHORT = "short trials: not RFC 2544"
VIRTUAL = "virtual: instructions are counted; caches, branches and the width of SIMD are not known"
ABOUT_VIRTUAL = (
    "The gateways' clock counts the instructions that they execute; it knows no caches, no branch prediction and no "
    "width of SIMD. The measured figure is instructions per frame, exact to the last one. Frames per second follow "
    "from the time that the profile assumes for each instruction."
)
