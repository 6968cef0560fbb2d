# SPDX-License-Identifier: Apache-2.0
"""Builds real gateways and boxes for tests, and finds things that runs leave behind."""
