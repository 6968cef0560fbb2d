# SPDX-License-Identifier: Apache-2.0
"""A guest's init loads modules in order; which refusals of the kernel end it (harness/emulator/init/modules.c)."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from espbench.paths import data_dir

pytestmark = pytest.mark.needs("gcc")
# The kernel's part: standard input is /modules/order; each argument is a module and the error with which it is refused.
STAND_IN = r"""
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "guest.h"

static int arguments;
static char **words;
static const char *opened;

bool slurp(const char *path, struct text *text)
{
	static char data[4096];

	text->length = fread(data, 1, sizeof(data) - 1, stdin);
	text->data = data;
	return path && text->length > 0;
}

int stand_in_open(const char *path, int flags, ...)
{
	opened = strrchr(path, '/') + 1;
	return flags < 0 ? -1 : 2;
}

long stand_in_syscall(long number, ...)
{
	for (int at = 1; number && at + 1 < arguments; at += 2)
		if (strcmp(words[at], opened) == 0) {
			errno = atoi(words[at + 1]);
			return -1;
		}
	printf("loaded %s\n", opened);
	return 0;
}

int main(int count, char **values)
{
	arguments = count;
	words = values;
	return load_modules() ? 0 : 1;
}
"""


@pytest.fixture(scope="module")
def init(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The init's part that loads modules, as a program with a stand-in for the kernel."""
    folder = tmp_path_factory.mktemp("init")
    (folder / "stand_in.c").write_text(STAND_IN)
    ours = data_dir("emulator") / "init"
    stand_ins = [f"-D{name}=stand_in_{name}" for name in ("open", "syscall")]
    argv = ["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{ours}", "-c"]
    subprocess.run([*argv, *stand_ins, ours / "modules.c"], cwd=folder, check=True)
    subprocess.run([*argv, "stand_in.c"], cwd=folder, check=True)
    subprocess.run(["gcc", "-o", "init", "modules.o", "stand_in.o"], cwd=folder, check=True)
    return folder / "init"


def loads(init: Path, order: str, refusals: Mapping[str, int]) -> tuple[bool, list[str]]:
    """Return whether the init goes on, and the lines on its console."""
    refused = [str(word) for refusal in refusals.items() for word in refusal]
    done = subprocess.run([init, *refused], input=order, capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stdout.splitlines()


def test_a_module_of_the_users_that_finds_nothing_to_drive_ends_the_init(init: Path) -> None:
    order = "?aesni_intel.ko\n?e1000e.ko InterruptThrottleRate=3,3\nspin.ko\n"
    assert loads(init, order, {}) == (
        True, ["loaded aesni_intel.ko", "loaded e1000e.ko", "loaded spin.ko"]
    )  # fmt: skip
    assert loads(init, order, {"aesni_intel.ko": errno.ENODEV}) == (
        True, ["loaded e1000e.ko", "loaded spin.ko"]
    )  # fmt: skip
    went_on, console = loads(init, order, {"spin.ko": errno.ENODEV})
    assert not went_on
    assert console[-1] == "espbench: module spin.ko: No such device"


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    modules=st.lists(st.tuples(st.booleans(), st.sampled_from([0, errno.ENODEV, errno.ENOENT])), max_size=5)
)
def test_the_init_ends_at_the_first_refusal_that_is_not_expected(
    init: Path, modules: list[tuple[bool, int]]
) -> None:
    names = [f"m{number}.ko" for number in range(len(modules))]
    order = "".join(
        f"{'?' if optional else ''}{name}\n" for name, (optional, _) in zip(names, modules, strict=True)
    )
    refusals = {name: error for name, (_, error) in zip(names, modules, strict=True) if error}
    ends = [error not in ((0, errno.ENODEV) if optional else (0,)) for optional, error in modules]
    went_on, console = loads(init, order, refusals)
    assert went_on is not any(ends)
    tried = names[: ends.index(True)] if any(ends) else names
    assert [line for line in console if line.startswith("loaded")] == [
        f"loaded {name}" for name in tried if name not in refusals
    ]
