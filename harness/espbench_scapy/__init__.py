# SPDX-License-Identifier: GPL-2.0-only
"""Programs that use Scapy (GPL-2.0-only); espbench runs them as separate processes."""
