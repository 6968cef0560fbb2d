# SPDX-License-Identifier: Apache-2.0
"""Has generators for tests: real ones on real links, a TRex without a wire, and streams by themselves."""
