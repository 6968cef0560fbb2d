# SPDX-License-Identifier: Apache-2.0
"""Defines the offered frames: traffic profiles, and their headers, sizes and recordings.

`traffic_profiles` reads the file; `traffic_pattern` turns it into what a generator needs. May import `plan.reading`
and `catalogue`.
"""
