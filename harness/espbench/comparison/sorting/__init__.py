# SPDX-License-Identifier: Apache-2.0
"""Outcomes sorted into arms and points, with what else differs between them.

`samples` reads runs, `axes` finds what is compared under equal conditions, `comparability` what is not equal;
`model` is what a comparison holds. May import `results`.
"""
