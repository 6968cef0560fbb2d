# SPDX-License-Identifier: Apache-2.0
"""Defines the offered frames: traffic profiles, and the headers, sizes and recordings they ask for.

`traffic_profiles` reads the file; `traffic_pattern` turns it into the orders for a generator. May import
`plan.reading` and `catalogue`.
"""
