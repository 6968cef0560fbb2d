# SPDX-License-Identifier: Apache-2.0
"""Devices under test that exist only as arithmetic: searches, procedures and comparisons run against them."""
