# SPDX-License-Identifier: Apache-2.0
"""Has real gateways and boxes for tests: pairs that they build, and what they leave behind."""
