# SPDX-License-Identifier: Apache-2.0
"""The report of cipher kernels on network processors."""
