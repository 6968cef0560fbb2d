# SPDX-License-Identifier: Apache-2.0
"""Shows where a gateway's instructions go: by function and by caller, from what QEMU counted by address.

`sections` reads what QEMU wrote, `symbols` names addresses, and `attribution` combines both. `csv_file` and `flame`
write the files, `difference` compares two profiles, and `from_run` finds all of this in a run directory.
May import `results`.
"""
