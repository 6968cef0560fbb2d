# SPDX-License-Identifier: Apache-2.0
"""Builds a user's kernel module that executes a known number of instructions for each forwarded packet."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from espbench.platforms.virtual.parts import recipe, sources
from espbench.platforms.virtual.parts.tools import Runner
from espbench.this_machine.registry import Registry

TURN = 2  # the instructions of one turn of the module's loop
_SOURCE = """\
// SPDX-License-Identifier: GPL-2.0-or-later
/* A hook that each packet passes that is forwarded; its turns are of two instructions each. */
#include <linux/module.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <net/net_namespace.h>

static unsigned int spin(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	unsigned long left = TURNS;

	asm volatile("1:\\tdec %0\\n\\tjnz 1b" : "+r"(left) : : "cc");
	return NF_ACCEPT;
}

static const struct nf_hook_ops hook = {
	.hook = spin, .pf = NFPROTO_IPV4, .hooknum = NF_INET_FORWARD, .priority = NF_IP_PRI_FIRST,
};

static int __init begin(void)
{
	return nf_register_net_hook(&init_net, &hook);
}

module_init(begin);
MODULE_LICENSE("GPL");
"""


def headers(work: Path) -> Path:
    """Fetch Debian's headers of the guests' kernel, unpack them below `work`, and return their folder.

    Skip the test if apt cannot fetch them.
    """
    image = recipe.used_packages()["linux-amd64"]
    release = image.name.removeprefix("linux-image-")
    series = ".".join(release.split(".")[:2])
    names = [
        f"linux-headers-{release}",
        f"linux-headers-{release.removesuffix('-amd64')}-common",
        f"linux-kbuild-{series}",
    ]
    root = work / "root"
    root.mkdir()
    with Registry("headers") as registry:
        runner = Runner(registry, work / "log", lambda line: None)
        lists = sources.own_lists(source_packages=False)
        sources.update(lists, runner)
        wanted = [f"{name}={image.version}" for name in names]
        done = subprocess.run(
            ["apt-get", *lists, "download", *wanted], cwd=work, capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(f"apt cannot fetch {', '.join(wanted)}: {done.stderr.strip()}")
    for file in work.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", file, root], check=True)
    folder = root / "usr/src" / names[0]
    makefile = folder / "Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src/", f"{root}/usr/src/"))
    return folder


def spinning(headers: Path, folder: Path, turns: int) -> Path:
    """Build spin.ko in a folder, like any other module, and return it; turns: of its loop for each packet."""
    folder.mkdir()
    (folder / "spin.c").write_text(_SOURCE)
    (folder / "Makefile").write_text(f"obj-m := spin.o\nccflags-y += -DTURNS={turns}\n")
    done = subprocess.run(
        ["make", "-C", headers, f"M={folder}", "modules"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / "spin.ko"
