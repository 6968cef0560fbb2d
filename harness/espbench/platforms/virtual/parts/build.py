# SPDX-License-Identifier: Apache-2.0
"""Builds the parts of a guest that are not in the cache, and finds those that are.

Each part is a folder of the cache whose name is the key of all its inputs (recipe.py). It is made in a temporary folder
and renamed when it is complete. So an interrupted build leaves the finished parts, and the next build continues from
there. manifest.json in the folder lists the inputs, the compilers, and the SHA-256 of the products.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import platform
import secrets
import shutil
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from espbench.errors import EspbenchError, MachineLacks
from espbench.paths import cache_dir
from espbench.platforms.base import Readiness
from espbench.platforms.virtual.parts import packages, recipe, sources, tools
from espbench.platforms.virtual.parts.recipe import Part
from espbench.platforms.virtual.parts.tools import Runner
from espbench.platforms.virtual.virtual_guest import Built, Userland
from espbench.this_machine import kept
from espbench.this_machine.private import foreign
from espbench.this_machine.registry import Registry

MANIFEST = "manifest.json"
NOT_THERE = "not built"
_SOURCES_MB = 200
_Found = TypeVar("_Found")
Trees = dict[str, Path]  # the work folders in which more than one part is made, by the parts' `tree`


class Progress(Protocol):
    """Receives reports on the progress of a build."""

    def note(self, text: str) -> None: ...

    def started(self, step: str, number: int, of: int) -> None: ...

    def line(self, text: str) -> None:
        """Receive the last line that a program of this step printed."""

    def finished(self, step: str, seconds: float, remark: str) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Kit(ABC, Generic[_Found]):
    """The parts that one `espbench build` builds, and the steps that build them.

    A step makes a part's products below a folder. name is the argument of `espbench build`; built: the parts' name for
    people, in the plural. without: the keys of tools.NEEDS and tools.LIBRARIES that are not needed. processor: the only
    architecture (as `uname -m` prints it) whose machines can build them; empty: any.
    """

    name: str
    built: str
    steps: Mapping[str, Callable[[Path, Runner], Mapping[str, Path]]]
    without: Sequence[str] = ()
    processor: str = ""

    @property
    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """The parts; that with the shortest build comes first, because its errors then show soonest."""

    @property
    def program(self) -> str:
        """The name of the product that this machine executes; empty if there is none."""
        return ""

    @property
    def command(self) -> str:
        """The command that builds it."""
        return f"espbench build {self.name}"

    @property
    def processor_fits(self) -> Readiness:
        """Tell whether machines with this machine's processor can build the parts, whatever is installed on them."""
        here = platform.machine()
        return Readiness(
            self.name,
            self.processor in ("", here),
            f"{self.built} are made by Debian's programs for {self.processor}, and this machine is {here}",
            f"build and measure on a machine that is {self.processor}",
        )

    def find(self) -> _Found | None:
        """Return the parts in the cache that have exactly the present inputs, without network.

        Return None if a part is missing, or was changed after it was built.
        """
        looked = {part.name: look(part) for part in self.parts}
        if any(why for _, _, why in looked.values()):
            return None
        return self.found({name: (folder, manifest) for name, (folder, manifest, _) in looked.items()})

    @abstractmethod
    def found(self, parts: Mapping[str, tuple[Path, Mapping[str, Any]]]) -> _Found:
        """Return the object for the finished parts. parts: the folder and the manifest of each, by the part's name."""

    def require(self) -> _Found:
        """Return the finished parts. Raise MachineLacks if they are not in the cache."""
        self._demand_processor()
        if (built := self.find()) is None:
            raise MachineLacks(f"{self.built} are not built{self._damage()}", self.command)
        return built

    def _demand_processor(self) -> None:
        if not (fits := self.processor_fits).ready:
            raise MachineLacks(fits.missing, fits.install)

    def readiness(self) -> Readiness:
        """Return whether the parts are in the cache; if not, the answer has the command that builds them."""
        if not (fits := self.processor_fits).ready:
            return fits
        if self.find() is not None:
            return Readiness(self.name, True, note=self.note)
        tooling = tools.need(self.built, self.without)
        install = self.command if tooling.ready else f"{tooling.install} && {self.command}"
        return Readiness(
            self.name,
            False,
            "; ".join(
                [f"{self.built} are not built{self._damage()}", *([] if tooling.ready else [tooling.missing])]
            ),
            install,
        )

    @property
    @abstractmethod
    def note(self) -> str:
        """The text about the cache for `espbench doctor`."""

    def build(
        self, registry: Registry, progress: Progress, *, again: bool = False, trees: Trees | None = None
    ) -> _Found:
        """Build the missing parts, and return the finished kit.

        again: build all parts, and compare them with the old ones. trees: the work folders that one command keeps from
        kit to kit, in the same registry.

        Raise MachineLacks if programs, room or sources are missing, EspbenchError, with the log's end, if a program
        fails. The cache always has complete parts only.
        """
        self._demand_processor()
        if not again and (built := self.find()) is not None:
            return built  # without a wait for another build
        for place in (cache_dir(), recipe.store()):
            kept.folder_of_ours(place)
        with _alone(progress):
            for folder, why in self._damaged():
                progress.note(f"{folder}: {why}; building it again")
                _drop(folder)
            todo = [part for part in self.parts if again or look(part)[2]]
            if todo:
                self._demand(todo)
                progress.note(f"building {self.built} into {recipe.store()}: some minutes, once")
            of = len(todo) + 1
            for number, part in enumerate([None, *todo] if todo else [], start=1):
                progress.started(part.name if part else "sources", number, of)
                since = time.monotonic()
                try:
                    remark = (
                        self._build_part(part, registry, progress, {} if trees is None else trees)
                        if part
                        else _fetch(todo, registry, progress)
                    )
                except OSError as error:  # such as a disk that another program filled meanwhile
                    raise EspbenchError(
                        f"{error.filename or recipe.store()}: {error.strerror or error}; parts that are done stay: "
                        "mend that, and build again"
                    ) from error
                progress.finished(part.name if part else "sources", time.monotonic() - since, remark)
        return self.require()

    def _damaged(self) -> list[tuple[Path, str]]:
        """Return the folder of each part in the cache that was changed or cannot be read, and the reason."""
        return [(folder, why) for folder, _, why in map(look, self.parts) if why not in ("", NOT_THERE)]

    def _damage(self) -> str:
        """Return the folders and reasons of the damaged parts, for a message."""
        return "".join(f" ({folder}: {why})" for folder, why in self._damaged())

    def _demand(self, todo: list[Part]) -> None:
        """Raise MachineLacks before the build starts if programs or room on the disk are missing."""
        if not (tooling := tools.need(self.built, self.without)).ready:
            raise MachineLacks(tooling.missing, tooling.install)
        needed = max(part.room_mb for part in todo) + _SOURCES_MB
        free = shutil.disk_usage(recipe.store()).free // 10**6
        if free < needed:
            raise MachineLacks(
                f"{recipe.store()}: building needs {needed} MB there, {free} MB are free",
                "make room, or set XDG_CACHE_HOME to a folder elsewhere",
            )

    def _build_part(self, part: Part, registry: Registry, progress: Progress, trees: Trees) -> str:
        """Make a part in a work folder, rename it to its place, and return a remark on it for the user."""
        runner = _runner(part.name, registry, progress)
        inputs, folder = recipe.inputs(part), _folder(part)
        work = trees.get(part.tree) or recipe.store() / f".work-{secrets.token_hex(3)}"
        entries = []
        if part.tree not in trees:
            entries.append(registry.add("directory", str(work)))
            work.mkdir(mode=0o700)
        whole = work / f"whole-{part.name}"
        whole.mkdir(mode=0o755)
        for name, file in self.steps[part.name](work, runner).items():
            shutil.copyfile(file, whole / name)
            (whole / name).chmod(0o755 if name == self.program else 0o644)
        digests = {name: recipe.digest(whole / name) for name in part.products}
        if recipe.inputs(part) != inputs:
            raise EspbenchError(
                f"{recipe.folder()}: a file of the {part.name} changed while it was built: build again"
            )
        manifest = {
            "inputs": inputs, "built_by": tools.versions(self.without), "products": digests
        }  # fmt: skip
        (whole / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")
        (whole / MANIFEST).chmod(0o644)
        remark = _put(whole, folder, manifest)
        if part.tree:  # the next part of the tree is made in this folder; the registry removes it later
            trees[part.tree] = work
        else:
            registry.undo(entries)
        return remark


@dataclass(frozen=True, kw_only=True)
class GuestKit(Kit[Built]):
    """The parts of one kind of guest. userland: the programs that its guests run besides their init."""

    guest: Part
    kernel: Part
    qemu: Part
    userland: Part | None = None

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts; that with the shortest build comes first."""
        return self.guest, self.kernel, *([self.userland] if self.userland else []), self.qemu

    @property
    def program(self) -> str:
        """QEMU."""
        return self.qemu.products[0]

    @property
    def note(self) -> str:
        """Words on what is in the cache."""
        return "kernel, initramfs and QEMU are in the cache"

    def found(self, parts: Mapping[str, tuple[Path, Mapping[str, Any]]]) -> Built:
        """Return the parts of a guest."""
        folders = {name: folder for name, (folder, _) in parts.items()}
        return Built(
            kernel=folders[self.kernel.name] / self.kernel.products[0],
            initramfs=folders[self.guest.name] / self.guest.products[0],
            qemu=folders[self.qemu.name] / self.qemu.products[0],
            manifests={part.name: parts[part.name][1] for part in (self.guest, self.kernel, self.qemu)},
            userland=_userland(*parts[self.userland.name]) if self.userland else None,
            qemu_made_of=recipe.key_of(parts[self.qemu.name][1]["inputs"]),
        )


@dataclass(frozen=True, kw_only=True)
class ProgramsKit(Kit[Userland]):
    """Programs that guests run only if their stack needs them."""

    programs: Part

    @property
    def parts(self) -> tuple[Part, ...]:
        """The only part."""
        return (self.programs,)

    @property
    def note(self) -> str:
        """Words on what is in the cache."""
        return "its programs are in the cache"

    def found(self, parts: Mapping[str, tuple[Path, Mapping[str, Any]]]) -> Userland:
        """Return the archives."""
        return _userland(*parts[self.programs.name])


def _userland(folder: Path, manifest: Mapping[str, Any]) -> Userland:
    return Userland(folder, manifest["products"])


def look(part: Part) -> tuple[Path, Mapping[str, Any], str]:
    """Return a part's folder in the cache, its manifest, and the reason why it cannot be used (empty if it can).

    Root executes the files in the folder, so it must belong to this user and be unchanged since it was built.
    """
    inputs = recipe.inputs(part)
    folder = recipe.store() / f"{part.name}-{recipe.key_of(inputs)}"
    if not kept.is_there(folder / MANIFEST):
        return folder, {}, NOT_THERE
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
        products = {name: str(manifest["products"][name]) for name in part.products}
        changed = "" if manifest["inputs"] == inputs else "it was made of something else than its name says"
    except (OSError, ValueError, KeyError, TypeError) as error:
        return folder, {}, f"{MANIFEST} cannot be read ({error!r})"
    return (
        folder,
        manifest,
        changed or foreign(folder / MANIFEST) or kept.problem_with_files(folder, products),
    )


def _drop(folder: Path) -> None:
    """Rename a folder, and then remove it: it may not be possible to remove another user's files.

    Raise MachineLacks if it cannot be renamed.
    """
    aside = folder.with_name(f".bad-{secrets.token_hex(3)}")
    try:
        folder.rename(aside)
    except OSError as error:
        raise kept.not_writable(folder, error) from None
    shutil.rmtree(aside, ignore_errors=True)


def _folder(part: Part) -> Path:
    return recipe.store() / f"{part.name}-{recipe.key(part)}"


@contextlib.contextmanager
def _alone(progress: Progress) -> Iterator[None]:
    """Let only one build run at a time; a second build waits, and then finds all parts in the cache.

    Raise MachineLacks if this user may not write there.
    """
    path = recipe.store() / ".lock"
    try:
        opened = path.open("w")
    except OSError as error:
        raise kept.not_writable(path, error) from None
    with opened as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.note("another espbench is building: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(todo: list[Part], registry: Registry, progress: Progress) -> str:
    """Fetch all sources and packages, and return their versions. This is the first step: versions change parts'
    keys.
    """
    names = [name for part in todo for name in part.sources]
    needed = list(dict.fromkeys(name for part in todo for name in recipe.packages_of(part)))
    grouped = {name: part.name for part in todo if part.group for name in recipe.packages_of(part)}
    runner = _runner("sources", registry, progress)
    sources.fetch(names, runner, progress.note)
    packages.fetch(needed, runner, progress.note)
    taken, binary = recipe.used(), recipe.used_packages()
    fetched = [taken[name] for name in names] + [binary[name] for name in needed if name not in grouped]
    said = [f"{package.name} {package.version}" for package in fetched]
    counted = Counter(grouped.values()).items()
    return ", ".join([*said, *(f"{count} packages for {part}" for part, count in counted)])


def _runner(step: str, registry: Registry, progress: Progress) -> Runner:
    return Runner(registry, recipe.store() / "logs" / f"{step}.log", progress.line)


def _put(whole: Path, folder: Path, manifest: Mapping[str, Any]) -> str:
    """Rename a finished part to its place, and return a remark. A former part is replaced only if it differs."""
    if not (folder / MANIFEST).is_file():
        shutil.rmtree(folder, ignore_errors=True)
        whole.rename(folder)
        return ""
    former = json.loads((folder / MANIFEST).read_text())
    if former["products"] == manifest["products"]:
        return "bit for bit as before"
    old = whole.with_name(f"old-{whole.name}")
    folder.rename(old)
    whole.rename(folder)
    return "not as before: " + _difference(former, manifest)


def _difference(former: Mapping[str, Any], manifest: Mapping[str, Any]) -> str:
    """Return which products differ, and why: with the same inputs, only other tools should make a difference."""
    names = [name for name, digest in manifest["products"].items() if former["products"].get(name) != digest]
    tools_then = former["built_by"]
    changed = [
        f"{tool} was {tools_then.get(tool, 'not noted')}, is {now}"
        for tool, now in manifest["built_by"].items()
        if tools_then.get(tool) != now
    ]
    why = (
        "; ".join(changed)
        or "by the same tools: a fault of the build, which should not depend on anything else"
    )
    return f"{', '.join(names)} ({why})"
