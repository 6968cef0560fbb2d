# SPDX-License-Identifier: Apache-2.0
"""A killed helper leaves a box changed, and the next one mends it; tried in a network namespace."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.root

BOX = """\
set -e
mount -t sysfs none /sys
mount -t tmpfs -o mode=755 none /run
ip link add e0 type veth peer name far
ip link set far up
ip link set e0 up mtu 1400 txqueuelen 77
ip addr add 10.1.2.3/24 dev e0
ip addr add fd00:77::3/64 dev e0 nodad
ip route add 10.9.0.0/16 via 10.1.2.9 dev e0 metric 7
ip route add 10.8.0.0/16 dev e0 table 77
ip neigh replace 10.1.2.9 lladdr 02:00:00:00:00:99 dev e0 nud permanent
exec "$@"
"""
# The helper remembers a port, and makes it bare, as the kernel returns one; then comes the body.
HELPER = """\
import subprocess, sys
from pathlib import Path
from espbench.platforms.remote.remote_box import Port, forget, mend, remember, state_file
before = Port.look("e0")
remember([before])
bare = "ip addr flush dev e0; ip route flush table 77; ip link set e0 down mtu 1500 txqueuelen 1000"
subprocess.run(["sh", "-c", bare], check=True)
{body}
"""


def on_a_box(body: str) -> str:
    """Return what the helper says, both streams."""
    done = subprocess.run(
        ["unshare", "--net", "--mount", "sh", "-c", BOX, "sh", sys.executable, "-c", HELPER.format(body=body)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    return done.stdout


def test_a_bare_port_becomes_what_it_was() -> None:
    said = on_a_box(
        """
assert Port.look("e0").shown() != before.shown()
mend()
now = Port.look("e0")
print(now.shown() == before.shown(), now.neighbours == before.neighbours, Path("/run/espbench-box").exists())
mend()
"""
    )
    assert said.splitlines() == [
        "espbench: gave back the ports that an espbench which was killed had taken",
        "True True False",
    ]


def test_what_was_given_to_it_meanwhile_stays() -> None:
    said = on_a_box(
        """
subprocess.run(["ip", "addr", "add", "10.5.5.5/32", "dev", "e0"], check=True)
mend()
print(Port.look("e0").addresses())
"""
    )
    assert said.splitlines()[-1] == "['10.1.2.3/24', '10.5.5.5/32', 'fd00:77::3/64']"


def test_a_port_that_is_gone_is_told_and_what_it_was_is_kept() -> None:
    said = on_a_box(
        """
from espbench.platforms.remote import remote_box
remote_box.BACK_WAIT_S = 0.1
subprocess.run(["ip", "link", "del", "e0"], check=True)
try:
    mend()
except SystemExit as end:
    print(end.code, state_file().exists())
"""
    )
    assert "they are not what they were: e0: ip link set dev e0" in said
    assert "set that right, and remove /run/espbench-box/ports.json" in said
    assert said.splitlines()[-1] == "3 True"


@pytest.mark.parametrize(
    "make", ["Path('/run/x').mkdir(mode=0o777); p.symlink_to('/run/x')", "p.mkdir(); p.chmod(0o755)"]
)
def test_a_file_that_others_may_have_put_there_is_not_believed(make: str) -> None:
    """It holds commands that root runs."""
    said = on_a_box(
        f"""
forget()
p = Path("/run/espbench-box")
{make}
try:
    mend()
except RuntimeError as error:
    print(error)
"""
    )
    assert "espbench-box: expected a directory of root's alone" in said


def test_what_this_kernel_cannot_give_back_is_found() -> None:
    """A route over two ports names neither of them as its own."""
    said = on_a_box(
        """
from espbench.platforms.remote.remote_box import cannot_return
def ip(line):
    subprocess.run(["ip", *line.split()], check=True)
ip("link set e0 up")
ip("addr add 10.1.2.3/24 dev e0")
ip("addr add 10.2.2.3/24 dev far")
print(cannot_return("e0"))
ip("route add 10.7.0.0/16 table 77 nexthop via 10.1.2.9 dev e0 nexthop via 10.2.2.9 dev far")
ip("nexthop add id 5 via 10.1.2.9 dev e0")
ip("route add 10.6.0.0/16 nhid 5")
print(sorted(cannot_return("e0")), cannot_return("far"), sep="\\n")
"""
    )
    assert said.splitlines() == [
        "[]",
        "['multipath route 10.7.0.0/16', 'nexthop object 5', 'route 10.6.0.0/16 by nexthop object 5']",
        "['multipath route 10.7.0.0/16']",
    ]
