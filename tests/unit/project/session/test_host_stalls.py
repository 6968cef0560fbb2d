# SPDX-License-Identifier: Apache-2.0
"""Stalls of the host excuse some failures; sessions with made-up stalls show which."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.session import host_stalls
from support.session.unsettled import Unsettled, assert_found, require_settled

pytest_plugins = ["pytester"]

HOOKS = "pytest_configure, pytest_runtest_protocol"
CONFTEST = f"from support.session.host_stalls import {HOOKS}"
FAILING = "import time\ndef test_{n}():\n    time.sleep(0.02)\n    assert False, 'lost 3 frames'\n"
MS = 1_000_000
WINDOW = st.tuples(st.integers(0, 1000), st.integers(1, 200)).map(lambda w: (w[0], w[0] + w[1]))
Session = Callable[..., pytest.RunResult]


@pytest.fixture
def session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Session:
    """Runs tests while every CPU stands still in the windows that a function of the time now gives."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv(host_stalls.COUNTED_IN, raising=False)

    def run(stalls: Callable[[int], list[host_stalls.Window]], *tests: str) -> pytest.RunResult:
        class MadeUp:
            def windows(self) -> list[host_stalls.Window]:
                return stalls(time.monotonic_ns())

            def close(self) -> None:
                pass

        monkeypatch.setattr(host_stalls, "Stalls", MadeUp)
        pytester.makeini("[pytest]\nmarkers = virtual_time")
        pytester.makeconftest(CONFTEST)
        pytester.makepyfile("".join(tests))
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-ra")

    return run


@pytest.fixture
def stolen(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a function that sets how many of 100 ticks the hypervisor takes."""

    def take(of_100: int) -> None:
        ticks = itertools.count()

        def cpu_time() -> host_stalls.CpuTime:
            passed = next(ticks)
            return host_stalls.CpuTime(passed * of_100, passed * 100)

        monkeypatch.setattr(host_stalls, "cpu_time", cpu_time)

    return take


def none(now: int) -> list[host_stalls.Window]:
    """Report a quiet host."""
    return []


def always(now: int) -> list[host_stalls.Window]:
    """A host that stands still most of the time."""
    return [(0, now)]


def test_a_failure_without_stalls_is_red_at_once(session: Session) -> None:
    """Nothing is run again, nothing skipped."""
    result = session(none, FAILING.format(n=0))
    result.assert_outcomes(failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert host_stalls.TITLE not in result.stdout.str()


def test_a_failure_beside_a_stall_too_short_to_explain_it_is_red_at_once(session: Session) -> None:
    """9 ms of stalls an hour ago and a tenth of a millisecond meanwhile."""
    result = session(lambda now: [(0, 9 * MS), (now - 5 * MS, now - 5 * MS + MS // 10)], FAILING.format(n=0))
    result.assert_outcomes(failed=1)
    assert host_stalls.TITLE not in result.stdout.str()


def test_a_test_that_a_stall_broke_is_run_again_and_named(session: Session) -> None:
    """It fails once, while the host stood still, and then passes."""
    once = "seen = []\ndef test_it():\n    seen.append(1)\n    assert len(seen) > 1, 'lost 3 frames'\n"
    result = session(always, once)
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines([f"*{host_stalls.TITLE}*", "*::test_it: 1 stalls*lost 3 frames*"])


@pytest.mark.parametrize(("before_s", "explains"), [(0.1, True), (9.0, True), (11.0, False), (100.0, False)])
def test_only_a_stall_shortly_before_a_failure_explains_it(before_s: float, explains: bool) -> None:
    """A test of two minutes fails, and the CPUs stood still once, for 50 ms."""
    failed = 120_000 * MS
    stood_still = failed - int(before_s * 1e9)
    attempt = host_stalls.Attempt([(stood_still - 50 * MS, stood_still)], 0, failed)
    assert (attempt.explains, attempt.count) == (explains, 1)


def test_time_that_the_hypervisor_takes_in_short_slices_explains_a_failure(
    session: Session, stolen: Callable[[int], None]
) -> None:
    """No stall is long enough to be seen; 16 % stolen explain the failure, 4 % do not."""
    stolen(16)
    result = session(none, FAILING.format(n=0))
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*::test_0: 0 stalls*16.0 % of the CPUs' time taken; *lost 3 frames*"])
    stolen(4)
    session(none, FAILING.format(n=1)).assert_outcomes(failed=1)


def test_a_single_stolen_tick_explains_no_failure() -> None:
    """A test of 20 ms gets four ticks of two CPUs: a quarter of them is one."""
    assert host_stalls._taken(host_stalls.CpuTime(0, 0), host_stalls.CpuTime(1, 4)) < host_stalls.TAKEN
    assert host_stalls._taken(host_stalls.CpuTime(0, 0), host_stalls.CpuTime(100, 1000)) == 0.1


def test_the_times_of_the_cpus_grow() -> None:
    """Both of them count from the machine's boot."""
    first = host_stalls.cpu_time()
    time.sleep(0.05)
    second = host_stalls.cpu_time()
    assert second.total > first.total
    assert 0 <= second.stolen - first.stolen <= second.total - first.total


PASSES_LATER = (
    "seen_{n} = []\ndef test_{n}():\n    seen_{n}.append(1)\n    assert len(seen_{n}) > 1, 'lost 3 frames'\n"
)


def test_up_to_five_tests_may_pass_later_and_six_fail_the_session(
    session: Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The summary counts them, and those of the parts before."""
    monkeypatch.setenv(host_stalls.COUNTED_IN, str(tmp_path / "again"))
    five = session(always, *(PASSES_LATER.format(n=n) for n in range(5)))
    five.assert_outcomes(passed=5)
    assert five.ret == pytest.ExitCode.OK
    five.stdout.fnmatch_lines(["5 tests passed only at a further attempt, because the host stood still"])
    six = session(always, PASSES_LATER.format(n=6))
    six.assert_outcomes(passed=1)
    assert six.ret == pytest.ExitCode.TESTS_FAILED
    six.stdout.fnmatch_lines(["FAILED: 6 tests passed only at a further attempt, *, more than 5: *"])


def test_up_to_three_skipped_tests_are_excused_and_four_fail_the_session(session: Session) -> None:
    """Each failed three times on a host that hardly ran; the summary says what that means."""
    three = session(always, *(FAILING.format(n=n) for n in range(3)))
    three.assert_outcomes(skipped=3)
    assert three.ret == pytest.ExitCode.OK
    four = session(always, *(FAILING.format(n=n) for n in range(4)))
    four.assert_outcomes(skipped=4)
    assert four.ret == pytest.ExitCode.TESTS_FAILED
    four.stdout.fnmatch_lines(["FAILED: 4 tests were skipped because the host stood still, more than 3:*"])


ALWAYS_STILL = """
import time
from support.session import host_stalls

class MadeUp:
    def windows(self):
        return [(0, time.monotonic_ns())]
    def close(self):
        pass

host_stalls.Stalls = MadeUp
"""


def test_tests_that_workers_skip_are_counted_together(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two files of two tests, each file with one worker: neither worker alone skips too many."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    monkeypatch.delenv(host_stalls.COUNTED_IN, raising=False)
    pytester.makeini("[pytest]\nmarkers = virtual_time")
    pytester.makeconftest(CONFTEST + ALWAYS_STILL)
    two = FAILING.format(n=0) + FAILING.format(n=1)
    pytester.makepyfile(test_first=two, test_second=two)
    result = pytester.runpytest_subprocess(
        "-p", "no:cacheprovider", "-p", "xdist", "-n", "2", "--dist", "loadfile"
    )
    result.assert_outcomes(skipped=4)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [f"*{host_stalls.TITLE}*", "*::test_?: skipped, the host*", "FAILED: 4 tests were skipped*"]
    )


def test_sessions_that_share_a_file_are_counted_together(
    session: Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The parts of `make test` are sessions of their own."""
    monkeypatch.setenv(host_stalls.COUNTED_IN, str(tmp_path / "build" / "skips"))
    first = session(always, *(FAILING.format(n=n) for n in range(3)))
    assert first.ret == pytest.ExitCode.OK
    second = session(always, FAILING.format(n=7))
    second.assert_outcomes(skipped=1)
    assert second.ret == pytest.ExitCode.TESTS_FAILED
    second.stdout.fnmatch_lines(["FAILED: 4 tests were skipped because the host stood still*"])


def test_one_attempt_on_a_host_that_ran_makes_the_failure_stand(session: Session) -> None:
    """The host stood still in the first attempt alone: the second one is red."""
    asked = []

    def first_only(now: int) -> list[host_stalls.Window]:
        asked.append(now)
        return [(0, asked[0])]

    result = session(first_only, FAILING.format(n=0))
    result.assert_outcomes(failed=1)
    assert len(asked) == 2


def test_in_virtual_time_a_failure_stands(session: Session) -> None:
    """It stands whatever the host did."""
    mark = "import pytest\npytestmark = pytest.mark.virtual_time\n"
    session(always, mark, FAILING.format(n=0)).assert_outcomes(failed=1)


def test_a_set_up_that_the_host_broke_skips_the_tests_of_its_file(session: Session) -> None:
    """Pytest keeps the failure of a shared fixture; each test that needs it counts as skipped."""
    shared = "import pytest\n@pytest.fixture(scope='module')\ndef run():\n    raise AssertionError('lost 3 frames')\n"
    tests = [f"def test_{n}(run):\n    pass\n" for n in range(4)]
    result = session(always, shared, *tests)
    result.assert_outcomes(skipped=4)
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@given(st.lists(WINDOW), st.integers(0, 500), st.integers(501, 1200))
def test_windows_are_joined_and_cut_off(windows: list[host_stalls.Window], begin: int, end: int) -> None:
    """Any window's time is covered, and counted once."""
    joined = host_stalls.within(windows, begin, end)
    covered = {t for a, b in windows for t in range(a, b)} & set(range(begin, end))
    assert {t for a, b in joined for t in range(a, b)} == covered
    assert sum(b - a for a, b in joined) == len(covered)


def test_a_bound_is_an_answer_where_the_test_can_use_it() -> None:
    """A row that is INVALID never is."""
    rows = [{"status": "OK"}, {"status": "LOWER_BOUND"}]
    require_settled(rows)
    with pytest.raises(Unsettled, match="1 of 2 results are LOWER_BOUND"):
        require_settled(rows, bounds=False)
    with pytest.raises(Unsettled, match="1 of 3 results are INVALID"):
        require_settled([*rows, {"status": "INVALID"}])


@pytest.mark.parametrize(
    ("status", "fps", "found"),
    [
        ("OK", "981", True),
        ("OK", "979", False),
        ("OK", "1021", False),
        ("LOWER_BOUND", "901", True),
        ("LOWER_BOUND", "899", False),
        ("LOWER_BOUND", "1021", False),
    ],
)
def test_a_bound_that_says_too_little_is_no_answer(status: str, fps: str, found: bool) -> None:
    """The truth is 1,000; half of it is never found with a bound of 0.9."""
    row = {"status": status, "throughput_fps": fps}
    if found:
        assert_found(row, 1000.0, bound=0.9)
    else:
        with pytest.raises(AssertionError):
            assert_found(row, 1000.0, bound=0.9)
