# SPDX-License-Identifier: Apache-2.0
"""Puts counted instructions and names together: the cost of each function, its context, and its callers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from espbench.errors import EspbenchError
from espbench.profile.programs import NO_PROGRAMS, Process, Programs
from espbench.profile.sections import How, Node, Section
from espbench.profile.symbols import UNNAMED, Function, KnownBy, Symbols, known_by

Where = Literal["hard interrupt", "softirq", "process", "idle", "user space", "asking"]
"""The context in which a function ran.

process: system calls and threads of the kernel. asking: the cost of espbench's own last reading of the CPU time. The
trial's record does not contain it, so it is counted as negative.
"""
WHERES: tuple[Where, ...] = ("hard interrupt", "softirq", "process", "idle", "user space", "asking")

ASKING = Function("[espbench reads the CPU's time]", "")
_SOFTIRQ = frozenset({"__do_softirq", "handle_softirqs"})
_IDLE = frozenset({"do_idle", "cpu_startup_entry"})
# Calls only pass through these functions; they do not count as the caller of the next function.
_PASSED = ("__x86_indirect_", "__x86_return_thunk", "its_return_thunk", "error_entry")


@dataclass(frozen=True)
class Profile:
    """The instructions of one gateway in one trial. frames: the number of frames that the gateway forwarded in it.

    costs: instructions by function and context. stacks: instructions by the chain of callers, outermost first, without
    `asking`.
    """

    case: str
    side: str
    frames: int
    costs: Mapping[tuple[Function, Where], int]
    stacks: Mapping[tuple[str, ...], int]

    @property
    def instructions(self) -> int:
        """The instructions of all functions; the same number as in the trial's record."""
        return sum(self.costs.values())

    @property
    def named_share(self) -> float:
        """The share of the instructions whose function has a name; an offset in a file is no name."""
        return self._share("name")

    @property
    def offset_share(self) -> float:
        """The share of the instructions whose function is known only by its offset in a file without symbols."""
        return self._share("offset")

    @property
    def naming(self) -> str:
        """Both shares, and that of the rest, in words."""
        rest = self._share("nothing")
        return f"{self.named_share:.2%} of them have a name, {self.offset_share:.2%} only an offset, {rest:.2%} neither"

    def _share(self, kind: KnownBy) -> float:
        chosen = sum(count for (function, _), count in self.costs.items() if known_by(function) == kind)
        return chosen / self.instructions if self.instructions else float(kind == "name")

    def by_function(self) -> dict[Function, int]:
        """Return the instructions of each function, summed over the contexts."""
        counts: Counter[Function] = Counter()
        for (function, _), count in self.costs.items():
            counts[function] += count
        return dict(counts)

    def by_where(self) -> dict[Where, int]:
        """Return the instructions of each context."""
        counts: Counter[Where] = Counter()
        for (_, where), count in self.costs.items():
            counts[where] += count
        return {where: counts[where] for where in WHERES if counts[where]}


def attribute(
    case: str,
    side: str,
    frames: int,
    section: Section,
    symbols: Symbols,
    asking: int = 0,
    programs: Programs = NO_PROGRAMS,
) -> Profile:
    """Return the profile of a section; asking: the instructions of reading the CPU time, which no record contains.

    EspbenchError if the count by address differs from the clock: a fault of espbench's own.
    """
    if section.counted != section.clock:
        raise EspbenchError(
            f"{case}, {side}: the profile has {section.counted} instructions, the clock counted {section.clock}; "
            "a fault of espbench's own"
        )
    paths = _Paths(section.nodes, symbols)
    ran = _ran(section, symbols, programs)
    costs: Counter[tuple[Function, Where]] = Counter()
    stacks: Counter[tuple[str, ...]] = Counter()
    names: dict[int, Function] = {}
    by_place: Counter[tuple[int, int]] = Counter()
    for node, address, times in section.executed():
        by_place[node, address] += times
    for (node, address), times in by_place.items():
        where, path = paths.of(node)
        if where == "user space" and symbols.at(address) is not None:
            where, path = "process", ()  # the kernel's entry code, before it switches to its own stack
        if where == "user space":
            process = ran[section.nodes[node].entry]
            in_program = UNNAMED if process is None else programs.at(process, address)
            costs[in_program, where] += times
            stacks[path if process is None else (f"[{process.name}]", str(in_program))] += times
            continue
        if (function := names.get(address)) is None:
            function = names[address] = symbols.at(address) or UNNAMED
        if function.name in _SOFTIRQ and where != "softirq":
            where = "softirq"
        elif function.name in _IDLE and where == "process":
            where = "idle"
        costs[function, where] += times
        last = str(function)
        stacks[path if path and path[-1] == last else (*path, last)] += times
    if asking:
        costs[ASKING, "asking"] -= asking
    return Profile(case, side, frames, dict(costs), dict(stacks))


def _ran(section: Section, symbols: Symbols, programs: Programs) -> dict[int, Process | None]:
    """Return the process of each user-space program, by the program's number; the executed addresses identify it."""
    addresses: defaultdict[int, set[int]] = defaultdict(set)
    for node, address, _ in section.executed():
        if section.nodes[node].how is How.USER and symbols.at(address) is None:
            addresses[section.nodes[node].entry].add(address)
    return {number: programs.running(executed) for number, executed in addresses.items()}


class _Paths:
    """Names the nodes of a tree of calls, each by its chain of callers."""

    def __init__(self, nodes: Mapping[int, Node], symbols: Symbols) -> None:
        self._nodes = nodes
        self._symbols = symbols
        self._known: dict[int, tuple[Where, tuple[str, ...]]] = {0: ("process", ())}

    def of(self, number: int) -> tuple[Where, tuple[str, ...]]:
        """Return the context of a node, and its chain of callers: the outermost function first, its own last."""
        todo = [number]
        while todo[-1] not in self._known:
            todo.append(self._nodes[todo[-1]].parent)
        for each in reversed(todo):
            if each not in self._known:
                self._known[each] = self._beneath(self._nodes[each])
        return self._known[number]

    def _beneath(self, node: Node) -> tuple[Where, tuple[str, ...]]:
        where, path = self._known[node.parent]
        if node.how is How.USER:
            return "user space", (f"[user space, program {node.entry}]",)
        name = self._symbols.at(node.entry) or UNNAMED
        if node.how is How.INTERRUPT:
            return "hard interrupt", ("[hard interrupt]", str(name))
        if where == "user space":
            where = "process"
        if name.name in _SOFTIRQ:
            where = "softirq"
        elif name.name in _IDLE and where == "process":
            where = "idle"
        if path and path[-1].startswith(_PASSED):
            path = path[:-1]
        if node.how is How.EXCEPTION:
            path = (*path, "[exception]")
        return where, path if path and path[-1] == str(name) else (*path, str(name))
