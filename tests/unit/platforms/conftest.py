# SPDX-License-Identifier: Apache-2.0
"""Has what tests of boxes behind labgrid share."""

from typing import Any

import pytest

from espbench.platforms.remote import labgrid_board, labgrid_worker


@pytest.fixture
def read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process read labgrid's files: each process of its own would import labgrid again.

    Other tests show that such a process answers.
    """

    def look(target: labgrid_board.LabgridTarget, task: str) -> dict[str, Any]:
        assert task == "look"
        try:
            return labgrid_worker.look(str(target.config), target.name)
        except Exception as error:  # as `labgrid_worker.main` does
            return {"error": labgrid_worker.Hidden().text_of(error)}

    monkeypatch.setattr(labgrid_board, "_run", look)
