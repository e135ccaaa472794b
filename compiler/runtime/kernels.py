"""Compiled units by their text: built once on a machine, whichever process asks first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from compiler.runtime.build import build
from compiler.runtime.store import Store, digest
from compiler.runtime.toolchain import Compiler

FORMAT = 1
COMMENT = re.compile(r"^[ \t]*//.*\n?|[ \t]+// [^\"\n]*$", re.MULTILINE)


class KernelEntry(msgspec.Struct, frozen=True):
    """What stands in the cache for one unit."""

    library: str
    """Digest of the shared library, and its name."""
    command: tuple[str, ...]
    compiler: str
    cpu_seconds: float
    wall_seconds: float


# Made now: msgspec looks names of types up by module, and ours may be out of reach later (tcw.py).
_ENTRY = msgspec.json.Decoder(KernelEntry)


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit to have as a shared library."""

    text: str
    flags: tuple[str, ...]
    libraries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Library:
    """A shared library in the cache."""

    path: Path
    digest: str
    hit: bool
    """It was there before."""
    cpu_seconds: float
    """Of the build, in whichever process it was."""
    wall_seconds: float


def without_comments(text: str) -> str:
    """The text without what the compiler does not see: lines of users move without effect."""
    return COMMENT.sub("", text)


def kernel_key(unit: Unit, compiler: Compiler) -> str:
    """The name under which a unit's library is found."""
    parts = [
        FORMAT,
        without_comments(unit.text),
        unit.flags,
        [Path(name).name for name in unit.libraries],
        compiler.version,
        compiler.command[1:],
    ]
    return digest(msgspec.json.encode(parts))


def library(unit: Unit, compiler: Compiler, store: Store) -> Library:
    """The unit's library, from the cache or built. Raises `BuildFailed`, OSError."""
    key = kernel_key(unit, compiler)
    found = _find(key, store)
    if found is not None:
        return found
    with store.locked(key):
        found = _find(key, store)
        if found is not None:
            return found
        built = build(unit.text, compiler, unit.flags, unit.libraries, store.folder)
        name = digest(built.library)
        path = store.write("objects", f"{name}.so", built.library)
        entry = KernelEntry(
            library=name,
            command=(*compiler.command, *unit.flags, *unit.libraries),
            compiler=compiler.version,
            cpu_seconds=built.cpu_seconds,
            wall_seconds=built.wall_seconds,
        )
        store.write_sealed("kernels", f"{key}.json", msgspec.json.encode(entry))
    return Library(path, name, False, built.cpu_seconds, built.wall_seconds)


def library_by_digest(name: str, store: Store) -> Path | None:
    """A library that an artifact names; a damaged one is removed and answers None."""
    content = store.read("objects", f"{name}.so")
    if content is None:
        return None
    if digest(content) != name:
        store.remove("objects", f"{name}.so")
        return None
    return store.path("objects", f"{name}.so")


def _find(key: str, store: Store) -> Library | None:
    content = store.read_sealed("kernels", f"{key}.json")
    if content is None:
        return None
    try:
        entry = _ENTRY.decode(content)
    except msgspec.MsgspecError:
        return None
    path = library_by_digest(entry.library, store)
    if path is None:
        return None
    return Library(path, entry.library, True, entry.cpu_seconds, entry.wall_seconds)
