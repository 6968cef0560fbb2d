# SPDX-License-Identifier: Apache-2.0
"""Has what pytest does around the tests: which of them this machine can run, and what a failure is worth."""
