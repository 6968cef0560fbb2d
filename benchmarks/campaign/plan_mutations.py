#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads plans with random mistakes, as a slip, a bad editor or an attacker would make them, and checks the result.

    benchmarks/campaign/plan_mutations.py [--plans 20000] [--seed 1] [--seconds 1] [--mib 200]

`mutated` makes one such plan. `tried` reads it in this process, and returns whether it was accepted, refused with a
proper message, or ended wrongly: with a traceback, with a message without a place, too slowly, or with too much memory.
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from espbench.errors import EspbenchError, UsageError
from espbench.plan import cases, conditions, resolve
from espbench.plan.duts.profiles import profile_of
from espbench.plan.reading.reader import check, read_text
from espbench.plan.resolved.asked import asked
from espbench.plan.traffic import traffic_profiles
from espbench.plan.traffic.traffic_pattern import pattern_of
from espbench.procedures.boards import accelerator, cipher_kernels
from espbench.search.loads import Loads

ROOT = Path(__file__).parents[2]
SECONDS, MIB = 1.0, 200
_NAME = "plan.yaml"
_PLACE = re.compile(rf"{_NAME}:\d+:\d+: .*expected .+, got.+", re.DOTALL)
_MORE = re.compile(rf"{_NAME}: and \d+ more")

PLAN, DUT_PROFILE, TRAFFIC_PROFILE = "plan", "DUT profile", "traffic profile"
# These plans have keys that none of espbench's own plans has.
_OF_MANY_KEYS = (
    "name: a\ntopology: gateway-to-gateway\ndut: netns\nstacks: [xfrm, strongswan]\nsuites: [aes128gcm16]\n"
    "frame_sizes: [64]\nflows: {networks: 2, "
    "ports: 3}\ngenerator: {native: {tx: xdp, rx: xdp, senders: 2, esp_memory_mib: 64}}\n"
    "compare: {by: stack, reference: xfrm, seed: 1, at: {trial: 1s}}\nrepeat: 3\n"
    "tests: [{throughput: {retries: 2}}]\n",
    "name: b\ntopology: no-network\ndut: ixp2800\ntests:\n  - cipher_kernels: {kernels: [aes, md5], levels: [2, 3], "
    "engines: [1, 2], threads: [1, 2], data: 2048, faster: {dram: 16.5%, sram: 1%}}\n",
    "name: c\ntopology: gateway-to-gateway\ndut: mpc8548e\nstacks: [plain]\ntests:\n  - accelerator: {operations: "
    "2000, sizes: [64, 128], suites: [3des-sha1], crypto: [async, polling]}\n",
)

_SCALARS = (
    "1e99999999", "'1e9999999999'", "'1e-9999999999'", "1/0", "5/3", "[" + "1, " * 900 + "1]",
    "1e308", "-1e308", "1e999", ".inf", "-.inf", ".nan", "-0", "-0.0", "0", "-1", "1", "9" * 30, "9" * 5000,
    "0x" + "f" * 5000, "0b1", "0o17", "1_000", "190:20:30", "1e-300", "5e-324", "''", '""', "~", "null", "yes",
    "true", "off", "=", "<<", "!", "2026-99-99", "2001-01-01", "2001-12-14t21:59:43.10-05:00", "!!timestamp foo",
    "!!int ''", "!!bool x", "!!float x", "!!null x", "!!binary '='", "!!binary aGk=", "!!str 5", "!!set {a: b}",
    "!!omap [a: b]", "!!pairs [a: b]", "!!python/object/apply:os.system [ls]", "!mine x", "!!seq x", "!!map x",
    "!!int 0b2", "!!int 1:x", "!!float 1:2", "!!timestamp 9999-12-31T23:59:59+99:99", "!!value x", "!!merge x",
    "!!int x", "!!float ''", "!!bool ''", "!!timestamp ''", "[]", "{}", "[[]]", "[{}]", "{a: {b: c}}", "[null]",
    "[1, [2]]", "{? [a] : b}", "{? {a: b} : c}", "*nowhere", "&a [*a]", "&a {a: *a}", "'a\nb'", '"\\0"',
    '"\\ud800"', '"\\e[31m"', '"\\u202e"', '"\\x85"', "\u2028", "\ufeff", "é", "日本", "🦆", "\u202e", "'",
    '"', "`", "@", "%", "|", ">", "- -", "? ?", ": :", "#", "...", "---", "1e999fps", "1e-300fps", "0fps",
    "9" * 400 + "fps", "1e308Gfps", "1e308Gbps", "9" * 400 + "Gbps", "1e-9", "1e-9%", "0.0000001%", "100%",
    "101%", "1e308%", "1e-320", "0ms", "9" * 400 + "s", "1e5s", "86401s", "-1s", "1.5.5s", "٣s", "²s", "1fps",
    "9" * 5000 + "M", "./none.yaml", "/dev/zero", "/dev/null", "/", "/proc/self/environ", "../../" * 500,
    "a" * 5000 + ".yaml", '"a\\0/b.yaml"', '"\\ud800/x.yaml"', "~/x", "file:///etc/passwd", "http://[::1/",
    "::1/128", "10.0.0.1/33", "10.0.0.1/-1", "10.0.0.1/" + "9" * 400, "1.2.3.4.5", "%%", "${HOME}", "$(ls)",
    "; ls", "{{7*7}}", "%s%n", "../..", ".", "..", "auto", "none", "same", "64", "63", "9001", "imix",
    "[64, 64]", "[" + "64, " * 3000 + "64]", "[" + ", ".join(map(str, range(64, 3064))) + "]", "1000",
)  # fmt: skip
_KEYS = (
    "name", "topology", "dut", "stacks", "suites", "traffic", "frame_sizes", "directions", "ip_versions", "repeat",
    "compare", "flows", "networks", "ports", "dont_fragment", "capture", "i_own_this_network", "line_rate",
    "generator", "tests", "throughput", "latency", "frame_loss", "flood", "back_to_back", "system_recovery",
    "time_to_first_packet", "rekey_loss", "set_up_rate", "rekey_rate", "capacity", "failover", "reset", "attack",
    "public_key", "accelerator", "trial", "final_trial", "resolution", "minimum", "maximum", "loss_goals", "settle",
    "residue", "learning", "warm_up", "retries", "search", "preset", "loss_verification", "stack", "home", "office",
    "label", "version", "prefix", "tunnels", "policies", "mode", "replay_window", "esn", "df", "interface", "crypto",
    "ike", "auth", "lifetime", "by", "reference", "seed", "native", "trex", "scapy", "server", "senders", "west",
    "east", "netns", "address", "gateway", "gateway_mac", "sizes", "operations", "<<", "=", "?", "", "null", "1",
)  # fmt: skip
_JUNK = ("[", "]", "{", "}", ":", ",", "- ", "#", "&a ", "*a", "!!", "\t", "\n", "\r", "\0", "\x07", "\x85",
         "\u2028", "\ufeff", "|\n", ">\n", "? ", "%", "@", "`", "'", '"', "---\n", "...\n", "\ud800")  # fmt: skip
_LAUGHS = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 12))


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True) or [""]


def _value(text: str, rng: random.Random) -> str:
    """Replace the value after a random colon, dash or comma."""
    places = [*re.finditer(r"(?<=[:\-,\[{] )[^\s,\[\]{}#][^,\]\}\n#]*", text)]
    if not places:
        return text + rng.choice(_SCALARS)
    place = rng.choice(places)
    return text[: place.start()] + rng.choice(_SCALARS) + text[place.end() :]


def _key(text: str, rng: random.Random) -> str:
    """Replace a random key, or add one."""
    # The possessive quantifier reads each word once; otherwise a very long word would take hours.
    places = [*re.finditer(r"(?<![\w.])[\w.]++(?=:)", text)]
    if not places or rng.random() < 0.3:
        return text + f"\n{rng.choice(_KEYS)}: {rng.choice(_SCALARS)}\n"
    place = rng.choice(places)
    key = rng.choice(_KEYS)
    more = f"{key}: {rng.choice(_SCALARS)}, {place[0]}" if rng.random() < 0.3 else key
    return text[: place.start()] + more + text[place.end() :]


def _line(text: str, rng: random.Random) -> str:
    """Repeat, delete, swap or indent a random line."""
    lines = _lines(text)
    here, there = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            lines.insert(there, lines[here])
        case 1:
            del lines[here]
        case 2:
            lines[here], lines[there] = lines[there], lines[here]
        case _:
            lines[here] = " " * rng.randrange(9) + lines[here].lstrip(" ")
    return "".join(lines)


def _characters(text: str, rng: random.Random) -> str:
    """Change or delete characters at a random place, or insert junk there."""
    place = rng.randrange(len(text) + 1)
    match rng.randrange(3):
        case 0:
            return (
                text[:place]
                + chr(rng.choice((rng.randrange(32, 127), rng.randrange(0x10000))))
                + text[place + 1 :]
            )
        case 1:
            return text[:place] + text[place + rng.randrange(1, 5) :]
        case _:
            return text[:place] + rng.choice(_JUNK) + text[place:]


def _deep(text: str, rng: random.Random) -> str:
    """Add nesting much deeper than in any plan, or aliases that expand to very large values."""
    depth = rng.choice((5, 40, 500, 3000))
    opening, closing = rng.choice(
        (("[", "]"), ("{a: ", "}"), ("[{a: ", "}]"), ("[", ""), ("- ", ""), ("? ", ""))
    )
    nested = opening * depth + closing * depth
    block = "".join(" " * n + f"k{n}:\n" for n in range(rng.choice((40, 400))))
    return rng.choice((
        lambda: text + f"\nx: {nested}\n",
        lambda: _put(text, nested, rng),
        lambda: _LAUGHS + text,
        lambda: text + "\n" + _LAUGHS + f"{rng.choice(_KEYS)}: *l9\n",
        lambda: text + "\nx:\n" + "".join(f" {line}\n" for line in block.splitlines()),
        lambda: "&a\n" + text + "\nx: *a\n",
    ))()  # fmt: skip


def _long(text: str, rng: random.Random) -> str:
    """Add a very long string, list, key or comment, or very many lines."""
    n = rng.choice((100, 5_000, 200_000, 3_000_000))
    return rng.choice((
        lambda: _put(text, rng.choice("a9é ") * n, rng),
        lambda: text + f"\n{'k' * n}: 1\n",
        lambda: text + "#" * n,
        lambda: _put(text, "[" + "a, " * (n // 10) + "a]", rng),
        lambda: text + "".join(f"\nk{i}: 1" for i in range(n // 20)),
        lambda: text + "\n" * n,
        lambda: _put(text, '"' + "\\n" * (n // 2) + '"', rng),
        lambda: text + "- " * (n // 10),
    ))()  # fmt: skip


def _put(text: str, value: str, rng: random.Random) -> str:
    places = [*re.finditer(r"(?<=: )[^\n]+", text)]
    if not places:
        return text + value
    place = rng.choice(places)
    return text[: place.start()] + value + text[place.end() :]


_KINDS: tuple[tuple[Callable[[str, random.Random], str], int], ...] = (
    (_value, 20), (_key, 12), (_line, 8), (_characters, 10), (_deep, 2), (_long, 1),
)  # fmt: skip


def mutated(text: str, rng: random.Random) -> str:
    """Return the plan with one to four random changes; the same for the same state of `rng`."""
    kinds, weights = zip(*_KINDS, strict=True)
    for kind in rng.choices(kinds, weights, k=rng.choice((1, 1, 1, 2, 2, 3, 4))):
        text = kind(text, rng)
    return text


@dataclass(frozen=True)
class Result:
    """The result of reading a plan.

    verdict: `accepted`, `refused`, or the fault, such as `too slow`. said: espbench's message. seconds: CPU time. mib:
    growth of the peak memory, MiB.
    """

    verdict: str
    said: str
    seconds: float
    mib: float

    @property
    def is_right(self) -> bool:
        """True if the plan was accepted or refused without a fault."""
        return self.verdict in ("accepted", "refused")


class _TooSlow(BaseException):
    pass


def tried(
    text: str, kind: str = PLAN, *, seconds: float = SECONDS, mib: float = MIB, folder: Path | None = None
) -> Result:
    """Read a plan as `espbench validate` does, list its cases and points, and compute the loads of each search.

    kind: the kind of file: a plan, or a profile that plans name. seconds, mib: the limits of CPU time and memory. Time
    is CPU time of this process, because a busy machine is not the plan's fault; memory is the growth of its peak. A
    plan that takes ten times as long is stopped. folder: the folder that the plan would be in.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise _TooSlow

    peak = _peak_mib()
    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, 10 * seconds)
    began = time.process_time()
    verdict, said = "accepted", ""
    try:
        _READERS[kind](text, folder or ROOT / "plans")
    except UsageError as error:
        verdict, said = "refused", str(error)
    except EspbenchError as error:
        verdict, said = "not a usage error", str(error)
    except _TooSlow:
        verdict = "too slow"
    except MemoryError:
        verdict = "too much memory"
    except BaseException:  # tracebacks are faults to be reported
        verdict, said = "traceback", traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    took, grown = time.process_time() - began, _peak_mib() - peak
    if verdict == "refused" and (wrong := _wrong_with(said)):
        verdict = wrong
    elif took > seconds:
        verdict = "too slow"
    elif grown > mib:
        verdict = "too much memory"
    return Result(verdict, said, took, grown)


def _read(text: str, folder: Path) -> None:
    plan = resolve(read_text(text, _NAME, "plan"), folder / _NAME)
    listed = cases(plan)
    asked(plan, [])
    conditions(plan, plan.known_profiles or [])
    cipher_kernels.configurations(plan)
    if plan.plan.accelerator is not None:
        accelerator.points(plan.plan.accelerator, plan.dut_names)
    settings = {id(case.settings): case for case in listed}
    for case in settings.values():
        low, high = (getattr(case.settings, key, None) for key in ("minimum", "maximum"))
        if low is not None and high is not None:
            rate = plan.plan.line_rate or 1e9
            minimum, maximum = (limit.to_fps(case.mean_frame_size, rate) for limit in (low, high))
            # A minimum above the maximum, in another unit, is the maximum in a run (limits.py).
            Loads(min(minimum, maximum), maximum, getattr(case.settings, "resolution", 0.01))


def _read_profile(text: str, folder: Path) -> None:
    profile_of(read_text(text, _NAME, DUT_PROFILE), folder)


def _read_traffic(text: str, folder: Path) -> None:
    document = read_text(text, _NAME, TRAFFIC_PROFILE)
    profile = check(traffic_profiles.Profile, document, traffic_profiles.profile_problems)
    if profile.pcap is not None:  # a template would start Scapy's process for each plan
        pattern_of(document, folder)


_READERS = {PLAN: _read, DUT_PROFILE: _read_profile, TRAFFIC_PROFILE: _read_traffic}


def _wrong_with(said: str) -> str:
    """Say what is wrong with a message; empty if nothing is."""
    if len(said) > 64 * 1024:
        return "message too long"
    try:
        said.encode()
    except UnicodeEncodeError:
        return "message cannot be printed"
    if any(not c.isprintable() and c != "\n" for c in said):
        return "message moves the cursor"
    if not said.startswith(f"{_NAME}:"):
        return "message without its place"
    starts = [line for line in said.splitlines() if line.startswith(_NAME)]
    if not all(_PLACE.match(line) or _MORE.fullmatch(line) for line in starts):
        return "message without expected and got"
    return ""


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def plans() -> list[str]:
    """Return the texts of all plans that come with espbench."""
    return [path.read_text(encoding="utf-8") for path in sorted((ROOT / "plans").glob("*.yaml"))]


def sources() -> list[tuple[str, str]]:
    """Return (kind, text) of every plan, and of every profile that a plan may name."""
    profiles = [(DUT_PROFILE, path) for path in sorted((ROOT / "dut-profiles").glob("*.yaml"))]
    of_users = [
        path
        for path in sorted((ROOT / "traffic" / "profiles").glob("*.yaml"))
        if path.stem != traffic_profiles.RFC2544  # the standard's own frame, which no user writes
    ]
    traffic = [(TRAFFIC_PROFILE, path) for path in of_users]
    files = [(kind, path.read_text(encoding="utf-8")) for kind, path in (*profiles, *traffic)]
    return [*((PLAN, text) for text in (*plans(), *_OF_MANY_KEYS)), *files]


def campaign(
    count: int, seed: int, *, seconds: float = SECONDS, mib: float = MIB
) -> list[tuple[int, str, Result]]:
    """Try `count` mutated plans; return (number, text, result) of those with a fault, and print a summary."""
    texts, wrong = sources(), []
    verdicts: Counter[str] = Counter()
    slowest = 0.0
    for number in range(count):
        rng = random.Random(f"{seed}/{number}")
        kind, text = rng.choice(texts)
        text = mutated(text, rng)
        result = tried(text, kind, seconds=seconds, mib=mib)
        verdicts[result.verdict] += 1
        slowest = max(slowest, result.seconds)
        if not result.is_right:
            wrong.append((number, text, result))
            print(f"plan {number}: {result.verdict}", flush=True)
    print(
        f"{count:,} mutated plans, seed {seed}: {dict(verdicts.most_common())}; slowest {slowest:.2f} s of CPU time"
    )
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the plans that the command line asks for; return the exit code: 1 if any had a fault."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--plans", type=int, default=20_000, help="number of plans [%(default)s]")
    parser.add_argument("--seed", type=int, default=1, help="[%(default)s]")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="most CPU time of a plan [%(default)s]"
    )
    parser.add_argument("--mib", type=float, default=MIB, help="most memory of a plan [%(default)s]")
    asked_for = parser.parse_args(arguments)
    limit = (
        int(3 * asked_for.mib * 2**20) + 2 * 2**30
    )  # a plan that expands without limit raises MemoryError and does not take the whole machine's memory
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
    wrong = campaign(asked_for.plans, asked_for.seed, seconds=asked_for.seconds, mib=asked_for.mib)
    for number, text, result in wrong[:20]:
        print(f"\n--- plan {number}: {result.verdict}, {result.seconds:.2f} s, {result.mib:.0f} MiB")
        print(f"{text[:600]!r}")
        print(ascii(result.said[-1500:]).replace("\\n", "\n"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
