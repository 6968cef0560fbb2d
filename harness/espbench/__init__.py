# SPDX-License-Identifier: Apache-2.0
"""espbench: an RFC 2544 test harness for IPsec gateways."""

__version__ = "0.1.0"
