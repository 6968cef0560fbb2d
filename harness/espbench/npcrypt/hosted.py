# SPDX-License-Identifier: Apache-2.0
"""Makes of a kernel a program for a computer with a C library, and reads what that program prints.

The program computes every known answer, then the data of a measurement; all of it is compared. It times the latter.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from espbench.errors import EspbenchError
from espbench.npcrypt.ciphers.kernel import Kernel
from espbench.npcrypt.compilers import ran
from espbench.npcrypt.proof import check, data_of, expected_of, lengthened
from espbench.paths import data_dir
from espbench.plan.keys.kernel_test import Level, Option

_FLAGS = ("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-DLOCAL_MEMORY")


@dataclass(frozen=True)
class Job:
    """Data to compute with the tables of a key, what must come out first, and whose answer that is."""

    key: bytes
    data: bytes
    answer: bytes
    source: str


def jobs(kernel: Kernel, size: int) -> list[Job]:
    """Return the known answers of a kernel, then so many bytes of a measurement."""
    known = [Job(v.key, lengthened(v), v.answer, v.source) for v in kernel.vectors]
    measured = Job(
        kernel.key, data_of(kernel.name, 0, size), expected_of(kernel.name, 0, size), "the data measured"
    )
    return [*known, measured]


def compiled(
    kernel: Kernel, level: Level, option: Option, size: int, folder: Path, *, tools: str = "", static: bool = False
) -> Path:  # fmt: skip
    """Compile a kernel into a folder of its own and return the program; size: of the data measured, bytes.

    tools: the prefix of a cross compiler; empty: this machine's own. EspbenchError tells what the compiler said.
    """
    sources = data_dir("network_processor") / "kernels"
    folder.mkdir(parents=True, exist_ok=True)
    command = [f"{tools}gcc", *_FLAGS, f"-{option}", f"-DLEVEL={level}"]
    code, program = folder / "kernel.o", folder / "program"
    ran([*command, "-c", str(sources / kernel.source), "-o", str(code)])
    symbols = set(ran([f"{tools}nm", str(code)]).split())
    (folder / "data.h").write_text(_header(kernel, symbols, jobs(kernel, size)), encoding="ascii")
    ran(
        [*command, *(["-static"] if static else []), f"-I{folder}", f"-I{sources}", str(sources / "here.c"),
         str(code), "-o", str(program)]
    )  # fmt: skip
    return program


def ns_per_call(kernel: Kernel, printed: str, size: int, where: str) -> float:
    """Return how long the program computed on the measured data, ns.

    EspbenchError at the first byte that differs from what had to come out, or if too little was printed.
    """
    lines = printed.splitlines()
    asked = jobs(kernel, size)
    if len(lines) != len(asked) + 1:
        raise EspbenchError(
            f"{where}: {kernel.shown}: expected {len(asked)} lines of output and one of time, got {len(lines)}"
        )
    for job, line in zip(asked, lines, strict=False):
        check(
            kernel, kernel.bytes([int(word) for word in line.split()]), job.answer, f"{where}, {job.source}"
        )
    ns, calls = map(int, lines[-1].split())
    return ns / calls


def _header(kernel: Kernel, symbols: set[str], asked: list[Job]) -> str:
    """Return the tables that a level has, and the data, as C."""
    parts, rows = [], []
    names = [name for name in kernel.tables(kernel.key) if name in symbols]
    for name in names:
        kind = "uint8_t" if name in kernel.byte_tables else "uint32_t"
        parts.append(f"extern {kind} {name}[{len(_values(kernel, name, kernel.key))}];\n")
    for number, job in enumerate(asked):
        words = kernel.words(job.data)
        copies = "".join(_copy(kernel, name, job.key) for name in names)
        parts.append(f"static const uint32_t data_{number}[] = {_listed(words)};\n")
        parts.append(f"static void set_tables_{number}(void)\n{{\n{copies}}}\n")
        output = kernel.output_bytes(len(job.data)) // 4
        rows.append(f"    {{set_tables_{number}, data_{number}, {len(words)}, {output}}},\n")
    most = max(len(job.data) // 4 for job in asked)
    return "".join(
        [*parts, f"#define MOST_WORDS {most}\n", "static const struct job jobs[] = {\n", *rows, "};\n"]
    )


def _copy(kernel: Kernel, name: str, key: bytes) -> str:
    kind = "uint8_t" if name in kernel.byte_tables else "uint32_t"
    return f"    memcpy({name}, (const {kind}[]){_listed(_values(kernel, name, key))}, sizeof({name}));\n"


def _values(kernel: Kernel, name: str, key: bytes) -> list[int]:
    words = kernel.tables(key)[name]
    if name in kernel.byte_tables:
        return [byte for word in words for byte in word.to_bytes(4, "little")]
    return words


def _listed(values: list[int]) -> str:
    return "{" + ", ".join(f"{value}u" for value in values) + "}"
