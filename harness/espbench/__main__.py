# SPDX-License-Identifier: Apache-2.0
"""`python -m espbench`."""

from espbench.cli.main import main

main()
