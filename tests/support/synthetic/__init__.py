# SPDX-License-Identifier: Apache-2.0
"""Made-up run directories: nothing in them was measured, everything in them could have been."""
