# SPDX-License-Identifier: Apache-2.0
"""Charts of unit tests are not drawn, which takes a quarter of a second each: in their place stands the digest of what
would be drawn, and its title. What looks at drawn ones makes them inside `with drawn():`.
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
    """Put the digest of a chart in the place of its drawing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vl_convert, "vegalite_to_svg", digest_of)
        yield


@contextlib.contextmanager
def drawn() -> Iterator[None]:
    """Draw the charts of the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vl_convert, "vegalite_to_svg", _DRAW)
        yield


def digest_of(chart: dict[str, Any], **options: Any) -> str:
    """Return an SVG without a shape; its description changes with whatever the drawing would depend on."""
    asked = json.dumps([chart, options], sort_keys=True).encode()
    title = " ".join(html.escape(str(text)) for text in chart.get("title", {}).values())
    digest = hashlib.sha256(asked).hexdigest()
    return f'<svg xmlns="http://www.w3.org/2000/svg"><title>{title}</title><desc>{digest}</desc></svg>'
