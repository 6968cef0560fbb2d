# SPDX-License-Identifier: Apache-2.0
"""NPCryptBench: ten cipher kernels, compiled and run on the engines of a network processor."""
