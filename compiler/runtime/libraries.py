"""Compiled units, cached by their text: built once per machine, by the first process to ask."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tcw.compiler.runtime.build import build
from tcw.compiler.runtime.store import FileStore, digest
from tcw.compiler.runtime.toolchain import Compiler

FORMAT = 1
COMMENT = re.compile(r"^[ \t]*//.*\n?|[ \t]+// [^\"\n]*$", re.MULTILINE)


class KernelEntry(msgspec.Struct, frozen=True):
    """The cache entry of one unit."""

    library: str
    """Digest of the shared library, which is also its name."""
    cpu_seconds: float


_ENTRY = msgspec.json.Decoder(KernelEntry)


@dataclass(frozen=True, slots=True)
class LibrarySource:
    """C++ text to be compiled to a shared library."""

    text: str
    flags: tuple[str, ...]
    libraries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Library:
    """A shared library in the cache."""

    path: Path
    digest: str
    hit: bool
    """Whether it was in the cache."""
    cpu_seconds: float
    """Of the build, whichever process ran it."""


def without_comments(text: str) -> str:
    """The text without comments, so that edits that only move the user's lines have no effect."""
    return COMMENT.sub("", text)


def kernel_key(unit: LibrarySource, compiler: Compiler) -> str:
    """The cache key of a unit's library."""
    parts = [
        FORMAT,
        without_comments(unit.text),
        unit.flags,
        [Path(name).name for name in unit.libraries],
        compiler.version,
        compiler.command[1:],
    ]
    return digest(msgspec.json.encode(parts))


def library(unit: LibrarySource, compiler: Compiler, store: FileStore) -> Library:
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
        entry = KernelEntry(name, built.cpu_seconds)
        store.write_sealed("kernels", f"{key}.json", msgspec.json.encode(entry))
    return Library(path, name, False, built.cpu_seconds)


def library_by_digest(name: str, store: FileStore) -> Path | None:
    """The path of a library that an artifact refers to, or None. A damaged library is removed."""
    content = store.read("objects", f"{name}.so")
    if content is None:
        return None
    if digest(content) != name:
        store.remove("objects", f"{name}.so")
        return None
    return store.path("objects", f"{name}.so")


def _find(key: str, store: FileStore) -> Library | None:
    entry = store.read_record("kernels", f"{key}.json", _ENTRY)
    if entry is None or (path := library_by_digest(entry.library, store)) is None:
        return None
    return Library(path, entry.library, True, entry.cpu_seconds)
