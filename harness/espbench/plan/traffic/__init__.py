# SPDX-License-Identifier: Apache-2.0
"""What the offered frames look like: traffic profiles, and the headers, sizes and recordings they ask for.

`traffic_profiles` reads the file, `traffic_pattern` makes of it what a generator is told. May import
`plan.reading` and `catalogue`.
"""
