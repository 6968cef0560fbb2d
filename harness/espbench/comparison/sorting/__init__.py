# SPDX-License-Identifier: Apache-2.0
"""Sorts outcomes into arms and points, and finds other differences between the runs.

`samples` reads runs, `axes` sorts their outcomes into arms under equal conditions, `comparability` finds conditions
that are not equal, and `operations` compares encryption with decryption. `model` defines a comparison. May import
`results`.
"""
