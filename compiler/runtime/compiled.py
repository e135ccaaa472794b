"""Turns an artifact into the function that AOTAutograd receives."""

from __future__ import annotations

import ctypes
import itertools
import linecache
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

from msgspec import structs

from tcw.compiler.control.hooks import Missing
from tcw.compiler.loops.sizes import FUNCTIONS
from tcw.compiler.runtime import wrapper_helpers
from tcw.compiler.runtime.artifact import Artifact, Binding, Unavailable
from tcw.compiler.runtime.build import BuildFailed
from tcw.compiler.runtime.gpu.load_kernels import gpu_functions, kernels_beside
from tcw.compiler.runtime.launcher import Launcher, functions, launcher, load_unit
from tcw.compiler.runtime.libraries import LibrarySource, library, library_by_digest
from tcw.compiler.runtime.operations import operation
from tcw.compiler.runtime.python_path import python_functions
from tcw.compiler.runtime.store import FileStore
from tcw.compiler.runtime.toolchain import Compiler, NoCompiler, find_compiler, unit_libraries

Boxed = Callable[[list[Any]], Any]

_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Compiled:
    """A callable graph."""

    call: Boxed
    """Takes its arguments in a list, empties it and returns a list, as `_boxed_call` declares."""
    artifact: Artifact
    hit: bool
    """The library was in the cache."""
    without_launcher: str = ""
    """Why its segments are called through ctypes; "" if they are not."""
    replayed: Boxed | None = None
    """`call` as CUDA graphs, if that was requested."""

    @property
    def outermost(self) -> Boxed:
        """What AOTAutograd calls."""
        return self.replayed or self.call


def load(
    artifact: Artifact,
    store: FileStore,
    constants: Mapping[str, Any] | None = None,
    otherwise: Boxed | None = None,
) -> Compiled:
    """The callable of an artifact. The unit is built if it is not in the cache.

    `constants` maps names to the graph's own tensors. `otherwise` runs the uncompiled graph; it is
    called if the tensors have no memory. Raises `Unavailable`, `BuildFailed`, OSError.
    """
    names: dict[str, Any] = {}
    hit, why = True, ""
    if artifact.unit:
        found = find_compiler()
        path, hit, artifact = _path(artifact, found, store)
        names, _, why = loaded_segments(artifact, path, found, store, otherwise)
    if artifact.entry:
        return Compiled(names[artifact.entry], artifact, hit, why)
    for binding in artifact.bindings:
        names[binding.name] = _resolve(binding, constants or {})
    return Compiled(run_wrapper(artifact, names), artifact, hit, why)


def _path(
    artifact: Artifact, compiler: Compiler | NoCompiler, store: FileStore
) -> tuple[Path, bool, Artifact]:
    """The library's path, whether it was cached, and the artifact with the library's digest."""
    if artifact.library:
        path = library_by_digest(artifact.library, store)
        if path is not None:
            return path, True, artifact
    if isinstance(compiler, NoCompiler):
        raise Unavailable(compiler.reason)
    unit = LibrarySource(artifact.unit, artifact.flags, unit_libraries(artifact.libraries))
    with kernels_beside(artifact, store):
        made = library(unit, compiler, store)
    known = structs.replace(artifact, library=made.digest, build_cpu_seconds=made.cpu_seconds)
    return made.path, made.hit, known


def loaded_segments(
    artifact: Artifact,
    path: Path,
    compiler: Compiler | NoCompiler,
    store: FileStore,
    otherwise: Boxed | None,
) -> tuple[dict[str, Any], ctypes.CDLL, str]:
    """(the segments by name, the library, why they are called through ctypes) of a built unit, with
    its GPU's kernels. Raises as `load` does."""
    try:
        made = launcher(compiler, store)
    except BuildFailed as error:
        made = Missing(str(error))
    if not isinstance(made, Launcher):
        if artifact.device >= 0:
            raise Unavailable(str(made))
        segments = python_functions(path, artifact.segments, otherwise)
        return segments, ctypes.CDLL(str(path)), str(made)
    unit = load_unit(path, made)
    if artifact.device < 0:
        return functions(unit, artifact.segments, otherwise), unit.handle, ""
    return gpu_functions(artifact, unit, made, store, otherwise), unit.handle, ""


def _resolve(binding: Binding, constants: Mapping[str, Any]) -> Any:
    if binding.kind == "operation":
        return operation(binding.target)
    if binding.kind == "constant":
        return constants[binding.target]
    return getattr(wrapper_helpers, binding.target)


def run_wrapper(artifact: Artifact, names: dict[str, Any]) -> Boxed:
    """The wrapper's function, in a namespace with its segments and bindings."""
    name = f"<tcw graph {artifact.name} {next(_numbers)}>"
    lines = artifact.wrapper.splitlines(keepends=True)
    # Without a modification time, linecache retains the text for tracebacks in this process.
    linecache.cache[name] = (len(artifact.wrapper), None, lines, name)
    code: CodeType = compile(artifact.wrapper, name, "exec", dont_inherit=True)
    names = {**FUNCTIONS, **names}
    exec(code, names)
    call: Boxed = names["call"]
    call._boxed_call = True  # type: ignore[attr-defined]
    return call
