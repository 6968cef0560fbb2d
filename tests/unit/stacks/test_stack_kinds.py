# SPDX-License-Identifier: Apache-2.0
"""Every stack of the catalogue has what makes it: nothing is measured as another stack under its name."""

from espbench.catalogue.stack_names import STACKS
from espbench.runs import stack_kinds
from espbench.stacks.daemons import builds, packages


def test_every_stack_without_a_daemon_is_in_the_table_of_static_stacks() -> None:
    static = {name for name, facts in STACKS.items() if not facts.ike}
    assert {"plain", *stack_kinds.STATIC} == static


def test_every_stack_with_a_daemon_is_in_the_table_of_the_place_of_its_esp() -> None:
    negotiated = {name: facts for name, facts in STACKS.items() if facts.ike}
    assert set(stack_kinds.DAEMONS) == {name for name, facts in negotiated.items() if facts.kernel_esp}
    assert set(stack_kinds.USER_SPACE) == {name for name, facts in negotiated.items() if not facts.kernel_esp}


def test_a_static_stack_of_its_own_class_says_its_own_name() -> None:
    names = {name: kind.name for name, kind in stack_kinds.STATIC.items()}
    assert names == {"null": "xfrm", "xfrm": "xfrm", "lean-esp": "lean-esp"}


def test_every_daemon_has_its_packages_programs_and_tools() -> None:
    daemons = {facts.daemon for facts in STACKS.values() if facts.ike}
    assert set(packages.PACKAGES) == set(builds.PROGRAMS) == set(builds.TOOLS) == daemons
