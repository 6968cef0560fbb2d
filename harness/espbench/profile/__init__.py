# SPDX-License-Identifier: Apache-2.0
"""Shows where a gateway's instructions go: by function and by caller, from what QEMU counted by address.

`sections` reads what QEMU wrote. `symbols` names addresses of the kernel, `programs` those in user space, with the
functions that `elf` finds in a file; `attribution` puts costs and names together. `csv_file` and `flame` write the
files, `difference` compares two profiles, and `from_run` finds all of this in a run directory.
May import `results`.
"""
