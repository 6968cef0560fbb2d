# SPDX-License-Identifier: Apache-2.0
"""Shows, by Linux's perf, in which of their parts and functions processes spend the host's CPU time."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from espbench.this_machine.processes import descendants

HERTZ = 997
LISTED = 20
# The beginning of a mapped file's name → its part. Executed memory without a file is translated code.
PARTS = {
    "qemu-system-ppc": "QEMU",
    "libnettle": "ciphers and hashes (nettle)",
    "libgmp": "ciphers and hashes (nettle)",
    "[kernel": "the host's kernel",
    "[vdso]": "the host's kernel",
    "espbench-traffic": "the generator",
    "mirror": "the mirror",
    "lib": "libraries",
    "ld-linux": "libraries",
}
GUEST_CODE = "the guest's code, translated"


def sample(processes: Mapping[str, int], work: Callable[[], object], folder: Path) -> str:
    """Do the work; return the profile of the processes (name → PID) and all their descendants meanwhile, as text."""
    data = folder / "perf.data"
    pids: dict[int, str] = {}

    # The work itself starts the processes that count (a trial's copies of the guests), so perf watches all CPUs.
    watch = ["perf", "record", "--quiet", "--all-cpus", "--event=cpu-clock", f"--freq={HERTZ}"]
    (orders, order), (answer, answers) = os.pipe(), os.pipe()
    watch += ["--delay=-1", f"--control=fd:{orders},{answers}", f"--output={data}"]
    with subprocess.Popen(watch, pass_fds=(orders, answers)) as perf:
        os.close(orders)
        os.close(answers)
        try:
            os.write(order, b"enable\n")
            if not os.read(answer, 16):  # perf answers once it watches
                raise SystemExit("perf may not watch here: be root, or set kernel.perf_event_paranoid to 0")
            work()
            for name, root in processes.items():
                pids |= dict.fromkeys([root, *descendants(root)], name)
            os.write(order, b"stop\n")
            perf.wait()
        finally:
            perf.terminate()
            os.close(order)
            os.close(answer)
    script = ["perf", "script", "-i", str(data), "-F", "pid,ip,sym,dso"]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"perf: {done.stderr.strip()}")
    return tables(done.stdout, pids)


def tables(script: str, pids: Mapping[int, str]) -> str:
    """Return tables of the samples that `perf script` printed, for these processes."""
    parts: Counter[tuple[str, str]] = Counter()
    functions: Counter[tuple[str, str]] = Counter()
    for line in script.splitlines():
        pid, _, rest = line.strip().partition(" ")
        owner = pids.get(int(pid.partition("/")[0])) if pid.partition("/")[0].isdigit() else None
        if owner is None:
            continue
        # The rest of a line is: ADDRESS FUNCTION (FILE).
        _, _, named = rest.strip().partition(" ")
        function, _, mapped = named.rpartition(" (")
        part = part_of(mapped.rstrip(")"))
        parts[owner, part] += 1
        functions[part, function.strip()] += 1
    total = sum(parts.values())
    if not total:
        raise SystemExit("perf saw nothing of these processes")
    rows = [f"{100 * n / total:6.1f} %  {owner}: {part}" for (owner, part), n in parts.most_common()]
    rows += ["", "functions"]
    named_ones = [(key, n) for key, n in functions.most_common() if key[0] != GUEST_CODE]
    rows += [f"{100 * n / total:6.1f} %  {part}: {name}" for (part, name), n in named_ones[:LISTED]]
    return "\n".join(rows)


def part_of(mapped: str) -> str:
    """Return the part of a process that a mapped file belongs to."""
    name = mapped.rpartition("/")[2]
    return next((part for begin, part in PARTS.items() if name.startswith(begin)), GUEST_CODE)
