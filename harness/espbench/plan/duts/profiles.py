# SPDX-License-Identifier: Apache-2.0
"""dut-profiles/*.yaml: each describes a device under test and the platform of its gateways."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PlainValidator, model_validator

from espbench.errors import UsageError
from espbench.paths import data_dir, data_names
from espbench.plan.duts.boards import Board, board_problems
from espbench.plan.duts.boxes import Boxes, TesterPorts, box_problems, with_files_beside
from espbench.plan.duts.machines import Machine, machine_problems
from espbench.plan.duts.processors import Processor, processor_problems
from espbench.plan.keys.values import LineRate, Name
from espbench.plan.reading.reader import Document, Problem, Strict, check, did_you_mean, read, shown
from espbench.plan.reading.units import Expected, parse_memory

LEAST_MEMORY, MOST_MEMORY = 128, 512
_RATE_OF_BUILT_LINKS = "10Gbps"


def _memory(value: object) -> int:
    mib = parse_memory(value)
    if not LEAST_MEMORY <= mib <= MOST_MEMORY:
        raise Expected(f"memory from {LEAST_MEMORY}M to {MOST_MEMORY}M", "256M is enough for one tunnel")
    return mib


class PerGateway(Strict):
    """One path for both gateways, or one for each, so that two kernels can be paired."""

    keys_are: ClassVar[str] = "a gateway (home or office)"

    home: Annotated[str, Field(min_length=1)]
    office: Annotated[str, Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def _both_alike(cls, value: Any) -> Any:
        return {"home": value, "office": value} if isinstance(value, str) else value


class Profile(Strict):
    """One device under test."""

    keys_are: ClassVar[str] = "a key of a DUT profile"

    name: Name
    """Its name in plans and reports."""
    description: str
    """One line for `espbench list duts`."""
    platform: Literal["netns", "uml", "remote", "qemu_e500", "qemu_x86", "ixp"]
    """The platform on which its gateways run."""
    line_rate: LineRate | None = None
    """Nominal rate of its ports, from which theoretical frame rates are computed.

    Default: 10Gbps; remote: the speed that the slower of this machine's two ports reports, or none.
    """
    mtu: Annotated[int, Field(ge=1280, le=9000)] = 1500
    """MTU of all its links, bytes."""
    queues: dict[str, str] = Field(default_factory=dict)
    """Every queue on the path and its length, for the report (a deep one stores an overload)."""
    memory: Annotated[int, PlainValidator(_memory)] = Field(256, json_schema_extra={"default": "256M"})
    """Memory of one gateway, from 128M to 512M (uml, qemu_e500, qemu_x86); read as MiB."""
    kernel: PerGateway = PerGateway(home="linux.uml", office="linux.uml")
    """Kernel: a path, for both gateways or as {home: …, office: …}.

    uml: or a name on PATH. qemu_x86: a bzImage. qemu_e500: a vmlinux with espbench's additions (docs/powerquicc.md).
    """
    modules: PerGateway | None = None
    """The kernel's modules: a path, for both gateways or as {home: …, office: …} (uml, qemu_x86, qemu_e500).

    uml, qemu_x86: the folder of a release. qemu_x86: also a .ko file, loaded after Debian's own. qemu_e500: a .ko file,
    or a folder of some.
    """
    overlay: PerGateway | None = None
    """A cpio archive that is unpacked over the root of a guest, for both gateways or as {home: …, office: …}.

    Its program /first is run at boot (qemu_e500, qemu_x86).
    """
    boxes: Boxes | None = None
    """The two gateways, reached over ssh (remote)."""
    ports: TesterPorts | None = None
    """The network ports of this machine that are wired to them (remote)."""
    i_own_this_network: bool = False
    """You may load this network (RFC 6815): allows ports of the initial namespace (remote)."""
    board: Board | None = None
    """The processor that is emulated (qemu_e500)."""
    machine: Machine | None = None
    """The machine that is emulated (qemu_x86)."""
    processor: Processor | None = None
    """The network processor, which has no gateways but engines (ixp)."""

    @model_validator(mode="before")
    @classmethod
    def _rate_of_built_links(cls, value: Any) -> Any:
        """Set the line rate of links that espbench builds, unless the profile says another; ports have a speed."""
        if isinstance(value, dict) and value.get("platform") != "remote":
            return {"line_rate": _RATE_OF_BUILT_LINKS, **value}
        return value

    @property
    def own_kernel(self) -> PerGateway | None:
        """The kernel that the profile itself names; None: the platform's default."""
        return self.kernel if "kernel" in self.model_fields_set else None

    def with_paths(
        self, changed: Callable[[str], str], of_modules: Callable[[str], str] | None = None
    ) -> Profile:
        """Return the profile with changed paths of its modules and overlay, and of the kernel if it names one itself.

        of_modules: changes the paths of modules and overlays, if not as those of kernels.
        """

        def both(paths: PerGateway, change: Callable[[str], str]) -> PerGateway:
            return PerGateway(home=change(paths.home), office=change(paths.office))

        kernel = {"kernel": both(self.own_kernel, changed)} if self.own_kernel else {}
        others = {
            key: both(paths, of_modules or changed) if paths else None
            for key, paths in (("modules", self.modules), ("overlay", self.overlay))
        }
        return self.model_copy(update=kernel | others)

    @property
    def emulated(self) -> bool:
        """True if its gateways are emulated, in virtual time."""
        return self.board is not None or self.machine is not None

    @property
    def core_note(self) -> str:
        """`core: …` if the emulated core is of another kind than the device's own; else empty."""
        return f"core: {self.board.core}" if self.board is not None and self.board.stands_in else ""


def profile_names() -> list[str]:
    """Return the names of the profiles that come with espbench."""
    return data_names("dut-profiles")


def is_path(dut: str) -> bool:
    """Return whether a plan's `dut` names a file rather than a profile."""
    return "/" in dut or dut.endswith((".yaml", ".yml"))


def profile_path(dut: str, plan_path: Path | None = None) -> Path:
    """Return the file that a plan's `dut` names, by a profile's name or by a path beside the plan. Raise UsageError."""
    if is_path(dut):
        return (plan_path.parent if plan_path else Path()) / dut
    if dut in profile_names():
        return data_dir("dut-profiles") / f"{dut}.yaml"
    known = profile_names()
    remedy = did_you_mean(dut, known, "write the path of a file of your own as ./my-profile.yaml")
    raise UsageError(f"dut: expected a profile ({', '.join(known)}) or a path, got {shown(dut)}; {remedy}")


def load_profile(dut: str, plan_path: Path | None = None) -> Profile:
    """Return the profile that a plan's `dut` names, by name or by a path beside the plan. Raise UsageError."""
    path = profile_path(dut, plan_path)
    return profile_of(read(path, "DUT profile"), path.parent)


def profile_of(document: Document, folder: Path) -> Profile:
    """Return the profile of a document; its relative paths start in this folder. Raise UsageError."""
    return _with_paths_beside(check(Profile, document, _problems), folder)


_KEYS_OF = {
    "uml": {"kernel", "modules", "memory"},
    "remote": {"boxes", "ports", "i_own_this_network"},
    "qemu_e500": {"board", "memory", "kernel", "modules", "overlay"},
    "qemu_x86": {"machine", "memory", "kernel", "modules", "overlay"},
    "ixp": {"processor"},
}
_WHY_NOT = {
    "netns": "namespaces are of this machine and run its kernel",
    "uml": "guests are of this machine",
    "remote": "boxes run their own kernels",
    "qemu_e500": "its boards are emulated",
    "qemu_x86": "its machines are emulated, with the kernel of `espbench build x86`",
    "ixp": "a network processor runs kernels of ciphers and has no gateways",
}


def _problems(profile: Profile) -> list[Problem]:
    """Find keys of other platforms, and keys of its own platform that are missing or contradict each other."""
    others = set().union(*_KEYS_OF.values()) - _KEYS_OF.get(profile.platform, set())
    problems = [
        Problem(
            (key,),
            f"no such key with platform: {profile.platform}",
            "one",
            f"{_WHY_NOT[profile.platform]}; remove it",
            on_key=True,
            involves=(("platform",),),
        )
        for key in sorted(profile.model_fields_set & others)
    ]
    line_rate = profile.line_rate or 0.0  # not known: only that of boxes
    if profile.platform == "remote":
        problems += box_problems(profile.boxes, profile.ports, owned=profile.i_own_this_network)
    if profile.platform == "qemu_e500":
        problems += board_problems(profile.board, line_rate, profile.mtu)
    if profile.platform == "qemu_x86":
        problems += machine_problems(profile.machine, line_rate, profile.mtu)
    if profile.platform == "ixp":
        problems += processor_problems(profile.processor)
    return problems


def _with_paths_beside(profile: Profile, folder: Path) -> Profile:
    """Return the profile with absolute paths; relative ones start at the profile. UML kernels without a slash stay
    as they are: they are looked up on PATH.
    """

    def beside(path: str) -> str:
        return str((folder / path).absolute())

    def kernel_beside(path: str) -> str:
        return path if profile.platform == "uml" and "/" not in path else beside(path)

    boxes = with_files_beside(profile.boxes, folder) if profile.boxes else None
    return profile.with_paths(kernel_beside, beside).model_copy(update={"boxes": boxes})
