# SPDX-License-Identifier: Apache-2.0
"""Where the instructions of a gateway went: by function and by who called whom, from what QEMU counted by address.

`sections` reads what QEMU wrote, `symbols` names addresses, `attribution` puts both together; `csv_file` and `flame`
are what is left of it, `difference` holds two against each other; `from_run` finds all of it in a run directory.
May import `results`.
"""
