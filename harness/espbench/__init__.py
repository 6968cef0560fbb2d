# SPDX-License-Identifier: Apache-2.0
"""espbench: an RFC 2544 test harness for IPsec gateways.

For Python (docs/python.md): `load` a run and read its data frames, `load_many` runs into one frame, `compare` them, and
read the `history` of many; have a `Plan` measured, and `check` one against a base.
These names are imported at their first use, because pandas takes half a second, and commands do not need it.
"""

from typing import TYPE_CHECKING, Any

from espbench.errors import EspbenchError, Interrupted, MachineLacks, UnreadableRun, UsageError
from espbench.version import __version__

if TYPE_CHECKING:
    from espbench.frames import History, Plan, Progress, Run, check, compare, history, load, load_many


__all__ = [
    "EspbenchError", "History", "Interrupted", "MachineLacks", "Plan", "Progress", "Run", "UnreadableRun", "UsageError",
    "__version__", "check", "compare", "history", "load", "load_many",
]  # fmt: skip

if not TYPE_CHECKING:  # with __getattr__, a type checker would accept any name

    def __getattr__(name: str) -> Any:
        """Return a name of espbench.frames, which is imported when one of its names is first used."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from espbench import frames  # noqa: PLC0415  (pandas: slow to import)

        return getattr(frames, name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
