# SPDX-License-Identifier: Apache-2.0
"""The beat of User-Mode Linux guests, on a process that counts its signals."""

from __future__ import annotations

import subprocess
import sys

from espbench.platforms.uml.beat import Beat

# It is ready when it has both handlers, and ends when each signal has come three times.
COUNTS = """
import signal
came = dict.fromkeys((signal.SIGALRM, signal.SIGIO), 0)
def count(number, frame):
    came[number] += 1
for each in came:
    signal.signal(each, count)
print("ready", flush=True)
while min(came.values()) < 3:
    signal.pause()
"""


def test_each_signal_comes_again_and_again() -> None:
    """SIGALRM for a timer that was missed, SIGIO for a frame that epoll did not know of yet."""
    with subprocess.Popen([sys.executable, "-c", COUNTS], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        beat = Beat("beat")
        beat.begin(process.pid)
        try:
            assert process.wait(60) == 0
        finally:
            beat.stop()
            process.kill()


def test_a_process_that_ended_gets_no_signal() -> None:
    """The thread of the beat ends by itself."""
    with subprocess.Popen([sys.executable, "-c", COUNTS], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        beat = Beat("beat")
        beat.begin(process.pid)
        process.kill()
        process.wait()
    beat.stop()
