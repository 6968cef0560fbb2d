# SPDX-License-Identifier: Apache-2.0
"""Controls the model of the Freescale SEC by its console, and makes the descriptors that a driver would give it."""
