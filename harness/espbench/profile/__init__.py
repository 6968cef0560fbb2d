# SPDX-License-Identifier: Apache-2.0
"""Shows where a gateway's instructions or CPU time go, by function and by caller.

Virtual time: `sections` reads the counts by address that QEMU wrote. `symbols` names addresses of the kernel,
`programs` those in user space, with the functions that `elf` reads from a file; `attribution` puts costs and names
together, `csv_file` writes them, `difference` compares two profiles, and `from_run` makes profiles of a run directory.
Real time: `samples` reads perf's samples, `sampled` computes costs and their errors, `sampled_file` writes them, and
`from_samples` makes profiles of a run directory. `flame` draws both kinds. May import `results`.
"""
