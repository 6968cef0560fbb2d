# SPDX-License-Identifier: Apache-2.0
"""Prepares the kernel and modules that an x86-64 guest boots: Debian's kernel or the user's, and the user's modules.

The user's kernel is a bzImage. Its modules are the folder of a release (`make modules_install`); espbench uses those
that a gateway needs, and all in `extra` or `updates`. With Debian's kernel, the user's modules are one file or a folder
of files. They are loaded after Debian's modules; a module with the name of one of Debian's replaces it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from espbench.errors import EspbenchError
from espbench.platforms.virtual.own import additions, own_files
from espbench.platforms.virtual.own.additions import Own, refused, release_of
from espbench.platforms.virtual.own.own_files import OwnFiles
from espbench.platforms.virtual.parts import recipe, x86_kernel
from espbench.platforms.virtual.parts.cpio import files_of as files_of_archives
from espbench.platforms.virtual.parts.cpio import joined
from espbench.platforms.virtual.parts.x86_kernel import name_of
from espbench.platforms.virtual.virtual_guest import Built
from espbench.terms import KERNEL_CONFIGURATION

PORTS = "e1000e"
# Without these modules a gateway cannot forward or encrypt. Other modules are used if the kernel has them.
_NEEDED = {
    PORTS: "the driver of its network ports (CONFIG_E1000E)",
    "esp4": "ESP (CONFIG_INET_ESP)",
    "xfrm_user": "XFRM (CONFIG_XFRM_USER)",
}
# An image with one of these texts has it built in: names of parameters and of the driver, or its own
# messages. (The names of functions are compressed in an image, and those of built-in modules are in a file beside it.)
_BUILT_IN = {
    PORTS: (b"\0e1000e.", b"\0e1000e\0"),
    "esp4": (b"esp4_init\0",),
    "xfrm_user": (b"Initializing XFRM netlink socket",),
}
_ADDED = ("extra", "updates")  # the subfolders of a release's folder for modules from other sources
_PT_NOTE, _PVH_NOTE = 4, 18  # XEN_ELFNOTE_PHYS32_ENTRY


@dataclass(frozen=True)
class Kernel:
    """A kernel as a guest boots it.

    image: its ELF file; None if the file must still be written from `data`. modules: the cpio archives of its modules;
    order: their files in the order of loading; optional: those of them that need not find anything to drive, because
    espbench chose them and not the user; overlay: the user's archive over the guest's root; facts: values that identify
    the user's kernel, modules and overlay.
    """

    image: Path | None
    data: bytes = b""
    modules: bytes = b""
    order: tuple[str, ...] = ()
    optional: frozenset[str] = frozenset()
    overlay: bytes = b""
    facts: Mapping[str, str] = field(default_factory=dict)


def debians(built: Built) -> Kernel:
    """Return Debian's kernel, as `espbench build x86` made it."""
    folder = built.kernel.parent
    order = tuple((folder / "modules.txt").read_text().split())
    return Kernel(
        built.kernel,
        modules=(folder / "modules.cpio").read_bytes(),
        order=order,
        optional=frozenset(order),
    )


def read(own: Own, built: Built) -> Kernel:
    """Return the kernel that a gateway boots. Raise UsageError if one of the user's files cannot be used."""
    kernel = _kernel(own, built)
    if own.overlay is None:
        return kernel
    overlay = additions.overlay_of(own.overlay)
    facts = {**kernel.facts, "overlay": additions.overlay_fact(own.overlay, overlay)}
    return replace(kernel, overlay=overlay, facts=facts)


def _kernel(own: Own, built: Built) -> Kernel:
    if own.kernel is None:
        usual = debians(built)
        return (
            usual
            if own.modules is None
            else _with_modules(usual, own.modules, release_of(built.kernel.read_bytes()))
        )
    file = additions.content(own.kernel, "kernel")
    try:
        data = x86_kernel.kernel_of(file)
    except (EspbenchError, struct.error, IndexError) as error:
        raise refused("kernel", own.kernel, "a bzImage (a vmlinuz) for x86-64", str(error)) from None
    release = release_of(data)
    if not release:
        raise refused("kernel", own.kernel, "a Linux kernel that tells its version", "none in it")
    if not _starts_directly(data):
        raise refused(
            "kernel",
            own.kernel,
            "a kernel that QEMU can start directly (CONFIG_PVH=y)",
            f"{release} without it",
        )
    modules = _of_release(own.modules, release) if own.modules else {}
    if own.modules is None:
        _demand_built_in(own.kernel, data, release)
    config = _config(data)
    facts = {"kernel": f"{release}, {own.kernel.name} sha256 {additions.digest(file)}"}
    facts |= {KERNEL_CONFIGURATION: f"sha256 {additions.digest(config)}"} if config else {}
    facts |= {"modules": additions.modules_fact(modules)} if modules else {}
    optional = (
        frozenset(modules) - {f"{name}.ko" for name in _added(own.modules)} if own.modules else frozenset()
    )
    return Kernel(None, data, additions.archived(modules), tuple(modules), optional, facts=facts)


def files_of(own: Own) -> list[OwnFiles]:
    """Return the files that another machine needs so that `read` returns the same there; raise UsageError as `read`.

    From a release's folder these are the modules that a gateway loads, and the list of built-in modules.
    """
    packed = []
    if own.kernel is not None:
        data = additions.content(own.kernel, "kernel")
        packed.append(own_files.packed(str(own.kernel), own.kernel.name, {"": data}))
    if own.modules is not None:
        packed.append(own_files.packed(str(own.modules), own.modules.name, _files_of_modules(own)))
    if own.overlay is not None:
        packed.append(additions.packed_overlay(own.overlay))
    return packed


def _files_of_modules(own: Own) -> dict[str, bytes]:
    """Return the contents of the modules' files by their names relative to the path in the profile."""
    assert own.modules is not None
    if own.kernel is None:
        return additions.files_of_modules(own.modules)
    release = release_of(x86_kernel.kernel_of(additions.content(own.kernel, "kernel")))
    added = _added(own.modules)
    files_of_release = {
        f"{_ADDED[0] if name_of(name) in added else 'kernel'}/{name}": data
        for name, data in _of_release(own.modules, release).items()
    }
    builtin = own.modules / "modules.builtin"
    return files_of_release | ({builtin.name: builtin.read_bytes()} if builtin.is_file() else {})


def _with_modules(usual: Kernel, path: Path, release: str) -> Kernel:
    """Return Debian's kernel with the user's modules; each replaces the module of its name, or is loaded last.

    A module comes after those that it needs, also among the user's.

    Raise UsageError if a module is of another release, or depends on modules that the gateway does not have.
    """
    own = additions.modules_of(path, release)
    there = {name_of(name) for name in (*usual.order, *own)}
    for name, data in own.items():
        if missing := [need for need in additions.depends(data) if need not in there]:
            raise refused(
                "modules", path, f"modules that need no other than the gateway has ({', '.join(sorted(there))})",
                f"{name}, which needs {', '.join(missing)}",
            )  # fmt: skip
    files = {Path(name).name: data for name, data in files_of_archives([usual.modules])} | own
    in_order = additions.ordered(path, {name: files[name] for name in (*usual.order, *own)})
    return Kernel(
        usual.image,
        modules=joined(usual.modules, additions.archived(own)),
        order=tuple(in_order),
        optional=usual.optional - own.keys(),
        facts={"modules": additions.modules_fact(own)},
    )


def _of_release(folder: Path, release: str) -> dict[str, bytes]:
    """Return the modules of a release that a gateway needs, and those in _ADDED, in the order of loading.

    Raise UsageError if the folder lacks a required module or a dependency.
    """
    if not folder.is_dir():
        raise refused(
            "modules", folder, f"the folder of the modules of {release} (lib/modules/{release})", "none"
        )
    there = {name_of(file.name) for file in folder.glob("**/*.ko*")}
    builtin = folder / "modules.builtin"
    there |= (
        {name_of(Path(line).name) for line in builtin.read_text().split()} if builtin.is_file() else set()
    )
    for name, what in _NEEDED.items():
        if name not in there:
            raise refused("modules", folder, f"{what}: {name}, as a module or in modules.builtin", "none")
    lines = (recipe.folder() / "x86/modules.txt").read_text().split("\n")
    wanted = [line for line in lines if line and not line.startswith("#") and name_of(line) in there]
    try:
        in_order = x86_kernel.modules(folder, [*wanted, *sorted(_added(folder))])
    except EspbenchError as error:
        raise refused("modules", folder, "modules with all that they need", str(error)) from None
    for name, data in in_order.items():
        additions.demand_release(folder / name, data, release)
    return in_order


def _added(folder: Path) -> set[str]:
    """Return the names of the modules from other sources in a release's folder."""
    return {name_of(file.name) for part in _ADDED for file in (folder / part).glob("**/*.ko*")}


def _demand_built_in(path: Path, image: bytes, release: str) -> None:
    """Raise UsageError if a kernel without modules lacks one of _NEEDED."""
    for name, what in _NEEDED.items():
        if not any(sign in image for sign in _BUILT_IN[name]):
            raise refused("kernel", path, f"{what} built in, or modules:", f"{release} with neither")


def _config(image: bytes) -> bytes:
    """Return the compressed configuration in a kernel (CONFIG_IKCONFIG); empty if the kernel does not contain it."""
    _, begins, rest = image.partition(b"IKCFG_ST")
    return rest.partition(b"IKCFG_ED")[0] if begins else b""


def _starts_directly(image: bytes) -> bool:
    """Return whether the ELF image has the note with the entry point for virtual machines (PVH)."""
    return any(name == b"Xen" and kind == _PVH_NOTE for name, kind in _notes(image))


def _notes(image: bytes) -> Iterator[tuple[bytes, int]]:
    table, size, count = struct.unpack_from("<Q", image, 32)[0], *struct.unpack_from("<HH", image, 54)
    for number in range(count):
        kind, _, at, _, _, length = struct.unpack_from("<IIQQQQ", image, table + number * size)
        end = at + length
        while kind == _PT_NOTE and at + 12 <= end:
            name_size, data_size, note = struct.unpack_from("<III", image, at)
            yield image[at + 12 : at + 12 + name_size].rstrip(b"\0"), note
            at += 12 + (name_size + 3 & ~3) + (data_size + 3 & ~3)
