# SPDX-License-Identifier: Apache-2.0
"""Writes a comparison as documents; `operations_documents` compares encryption with decryption and with a pair.

May import `results`, `comparison.*` and `reporting.parts`.
"""
