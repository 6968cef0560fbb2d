# SPDX-License-Identifier: Apache-2.0
"""Makes synthetic run directories and results, with plausible figures that were not measured."""
