# SPDX-License-Identifier: Apache-2.0
"""A comparison as documents; with `operations_documents`, encryption beside decryption and beside a pair.

May import `results`, `comparison.*` and `reporting.parts`.
"""
