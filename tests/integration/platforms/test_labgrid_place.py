# SPDX-License-Identifier: Apache-2.0
"""Two boxes whose power switches are one labgrid place: labgrid's own coordinator and exporter, on this machine.

Each switch is a web server, which labgrid calls as it calls a real one.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from espbench.errors import EspbenchError
from espbench.platforms.remote.labgrid_board import Board, LabgridTarget, examine
from espbench.this_machine.registry import Registry

pytestmark = [pytest.mark.needs("labgrid"), pytest.mark.virtual_time]

PLACE = "pair-1"
_EXPORTED = """\
pair-1:
  home: {{cls: NetworkPowerPort, model: simplerest, host: '{switch}', index: 0}}
  office: {{cls: NetworkPowerPort, model: simplerest, host: '{switch}', index: 1}}
"""
_ENVIRONMENT = """\
options: {{coordinator_address: '{coordinator}'}}
targets:
  home:
    resources: [{{RemotePlace: {{name: pair-1}}}}]
    drivers: [{{NetworkPowerDriver: {{delay: 0.5, bindings: {{port: home}}}}}}]
  office:
    resources: [{{RemotePlace: {{name: pair-1}}}}]
    drivers: [{{NetworkPowerDriver: {{delay: 0.5, bindings: {{port: office}}}}}}]
"""
_PATIENCE_S = 120.0


@dataclass
class Lab:
    """The lab's file; switched: the paths that labgrid asked the switches for, such as /0/1 (port 0, on)."""

    environment: Path
    coordinator: str
    switched: list[str] = field(default_factory=list)

    def client(self, *arguments: str) -> str:
        """Run labgrid-client, and return its output."""
        done = subprocess.run(
            [_program("client"), *arguments], env=os.environ | {"LG_COORDINATOR": self.coordinator},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.stdout + done.stderr

    def board(self, registry: Registry, side: Any) -> Board:
        return Board(
            registry, side, LabgridTarget(self.environment, side), self.environment.with_name(f"{side}.log")
        )


def _program(name: str) -> str:
    return str(Path(sys.executable).with_name(f"labgrid-{name}"))


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """The place exists and has both switches; nobody has acquired it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        coordinator = f"127.0.0.1:{free.getsockname()[1]}"
    made = Lab(tmp_path / "lab.yaml", coordinator)

    class Switch(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.switched.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"1")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Switch) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        switch = f"http://127.0.0.1:{server.server_port}/{{index}}/{{value}}"
        (tmp_path / "exported.yaml").write_text(_EXPORTED.format(switch=switch))
        made.environment.write_text(_ENVIRONMENT.format(coordinator=coordinator))
        log = (tmp_path / "labgrid.log").open("wb")
        commands = [
            [_program("coordinator"), "--listen", coordinator],
            [
                _program("exporter"),
                "--coordinator",
                coordinator,
                "--name",
                "bench",
                str(tmp_path / "exported.yaml"),
            ],
        ]
        processes = []
        try:
            with log:
                # The coordinator writes its places into the folder where it runs.
                processes.append(subprocess.Popen(commands[0], cwd=tmp_path, stdout=log, stderr=log))
                until(lambda: "could not" not in made.client("places").lower())
                processes.append(subprocess.Popen(commands[1], cwd=tmp_path, stdout=log, stderr=log))
            until(lambda: made.client("resources").count("NetworkPowerPort") == 2)
            made.client("--place", PLACE, "create")
            made.client("--place", PLACE, "add-match", "bench/pair-1/*")
            yield made
        finally:
            for process in reversed(processes):
                process.kill()
                process.wait()
            server.shutdown()


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with Registry("place", tmp_path / "journals") as made:
        yield made


def test_a_pair_of_boxes_is_one_place(lab: Lab, registry: Registry) -> None:
    """Each box has its own switch of the place; until somebody acquires it, one message says so."""
    assert examine(LabgridTarget(lab.environment, "home")).power
    with pytest.raises(EspbenchError, match=r"home: labgrid target home .*: place pair-1 is not acquired"):
        lab.board(registry, "home")
    assert "acquired place" in lab.client("--place", PLACE, "acquire")
    for number, side in enumerate(("home", "office")):
        box = lab.board(registry, side)
        assert (box.has_power, box.delay_s) == (True, 0.5)
        box.off()
        box.on()
        assert lab.switched == [f"/{number}/0", f"/{number}/1"]
        lab.switched.clear()
