# SPDX-License-Identifier: Apache-2.0
"""Replaces the charts of unit tests by their titles and digests, because to draw one takes a quarter of a second.

Tests that need real charts make them inside `with drawn():`.
"""

import contextlib
import hashlib
import html
import json
from collections.abc import Iterator
from typing import Any

import pytest
import vl_convert

_DRAW = vl_convert.vegalite_to_svg


@pytest.fixture(scope="session", autouse=True)
def pictures_by_digest() -> Iterator[None]:
    """Replace the drawing of charts by digest_of."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vl_convert, "vegalite_to_svg", digest_of)
        yield


@contextlib.contextmanager
def drawn() -> Iterator[None]:
    """Draw real charts while the context lasts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vl_convert, "vegalite_to_svg", _DRAW)
        yield


def digest_of(chart: dict[str, Any], **options: Any) -> str:
    """Return an SVG without shapes; its description is a digest of everything that the drawing would depend on."""
    asked = json.dumps([chart, options], sort_keys=True).encode()
    title = " ".join(html.escape(str(text)) for text in chart.get("title", {}).values())
    digest = hashlib.sha256(asked).hexdigest()
    return f'<svg xmlns="http://www.w3.org/2000/svg"><title>{title}</title><desc>{digest}</desc></svg>'
