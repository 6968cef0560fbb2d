# SPDX-License-Identifier: Apache-2.0
"""Writes JUnit XML, which CI systems show: the parts of such a file, and the results of a run as `junit.xml`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from espbench.results import accelerator as driver_level
from espbench.results.accelerator import AcceleratorResult, PublicKeyResult
from espbench.sentences import goal_name
from espbench.terms import PAIRED, Finding, Manifest, Outcome

# Characters that XML 1.0 cannot contain; messages of gateways may have some.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ANSWERED = ("OK", "BELOW_MINIMUM")
VIOLATED = "VIOLATED"


def clean(text: str) -> str:
    """Return the text, with the characters that XML cannot contain replaced."""
    return _FORBIDDEN.sub("\ufffd", text)


def suite(name: str, properties: Iterable[tuple[str, str]]) -> Element:
    """Return an empty test suite."""
    made = Element("testsuite", name=clean(name))
    listed = SubElement(made, "properties")
    for key, value in properties:
        SubElement(listed, "property", name=clean(key), value=clean(value))
    return made


def case(of: Element, group: str, name: str) -> Element:
    """Add a test case to a suite and return it; its time is 0, since the duration of a case is not a result."""
    return SubElement(of, "testcase", classname=clean(group), name=clean(name), time="0")


def document(of: Element) -> str:
    """Return the text of the file; set the suite's numbers of tests, failures, errors and skipped tests."""
    cases = of.findall("testcase")
    of.set("tests", str(len(cases)))
    of.set("failures", str(sum(each.find("failure") is not None for each in cases)))
    of.set("errors", str(len(of.findall("testcase/error"))))
    if skipped := len(of.findall("testcase/skipped")):
        of.set("skipped", str(skipped))
    indent(of)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(of, encoding="unicode") + "\n"


def junit_text(
    manifest: Manifest,
    results: Sequence[Outcome | Finding],
    where: str,
    accelerator: Sequence[AcceleratorResult] = (),
    public_keys: Sequence[PublicKeyResult] = (),
) -> str:
    """Return `junit.xml`: a test case for each case and loss goal of a run, for each comparison at fixed loads, and for
    each figure of a driver-level test, which belongs to no case.

    VIOLATED is a failure; LOWER_BOUND, INVALID and UNRESOLVABLE are errors. `espbench run` ends with exit code 3 for
    each of them. A case that was not measured yet is skipped. where: path of the run directory.
    """
    properties = {
        "run": where,
        "started": manifest.started,
        "espbench": manifest.espbench,
        "platform": manifest.platform,
        "topology": manifest.topology,
    }
    made = suite(f"espbench {manifest.name}", properties.items())
    of_case: Mapping[str, list[Outcome | Finding]] = _by_case(results)
    for entry in manifest.cases:
        group = f"espbench.{manifest.name}.{entry.test}"
        if entry.case not in of_case:
            SubElement(case(made, group, entry.case), "skipped", message="not measured yet")
        for result in of_case.get(entry.case, []):
            goal = f", {goal_name(result.loss_goal)}" if isinstance(result, Outcome) else ""
            _tell(result, case(made, group, f"{entry.case}{goal}"))
    for result in results:
        if result.test == PAIRED:  # belongs to no case of the plan
            _tell(result, case(made, f"espbench.{manifest.name}.{PAIRED}", result.case))
    for figure in accelerator:
        _tell_accelerator(
            figure,
            case(
                made, f"espbench.{manifest.name}.accelerator", driver_level.name_of(driver_level.key(figure))
            ),
        )
    for of_unit in public_keys:
        _tell_public_key(of_unit, case(made, f"espbench.{manifest.name}.public_key_unit", _name(of_unit)))
    return document(made)


def _by_case(results: Iterable[Outcome | Finding]) -> dict[str, list[Outcome | Finding]]:
    by_case: dict[str, list[Outcome | Finding]] = {}
    for result in results:
        if result.test != PAIRED:  # those belong to no case of the plan
            by_case.setdefault(result.case, []).append(result)
    return by_case


def _tell(result: Outcome | Finding, to: Element) -> None:
    reasons = [str(reason) for reason in result.reasons]
    if result.status == VIOLATED or result.status not in _ANSWERED:
        kind = "failure" if result.status == VIOLATED else "error"
        because = "; ".join(reasons) or result.words or result.status
        SubElement(to, kind, type=result.status, message=clean(because)).text = clean("\n".join(reasons))
    lines = [result.status, result.words, *(str(remark) for remark in result.warnings)]
    if isinstance(result, Finding):
        lines += [f"{q.name}: {q.value:g} {q.unit}" for q in result.quantities if q.value is not None]
    SubElement(to, "system-out").text = clean("\n".join(line for line in lines if line))


def _tell_accelerator(figure: AcceleratorResult, to: Element) -> None:
    if not figure.is_valid:
        share = f"{figure.disturbed_pct:.1f} %"
        because = f"in each attempt the host took too much of the guest's time, in the last {share}"
        SubElement(to, "error", type="INVALID", message=because)
    lines = [
        "OK" if figure.is_valid else "INVALID",
        f"one after the other: {figure.after_mbps:g} Mbit/s",
        f"all at once: {figure.at_once_mbps:g} Mbit/s",
    ]
    SubElement(to, "system-out").text = "\n".join(lines)


def _name(figure: PublicKeyResult) -> str:
    """Return a name that no other figure of the run has: `public-key-mpc8548e-83MHz-unit-rsa-512-512`."""
    point = [figure.by, figure.operation, figure.bits, figure.exponent_bits]
    return "-".join(["public-key", figure.dut, f"{figure.clock_mhz:g}MHz", *map(str, point)])


def _tell_public_key(figure: PublicKeyResult, to: Element) -> None:
    SubElement(to, "system-out").text = f"OK\none operation: {figure.ms:g} ms"
