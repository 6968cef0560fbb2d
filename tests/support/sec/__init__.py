# SPDX-License-Identifier: Apache-2.0
"""The model of the Freescale SEC on its console, and the descriptors a driver gives it."""
