# SPDX-License-Identifier: Apache-2.0
"""Has devices in virtual time for tests, whole runs of them, and what runs in their guests."""
