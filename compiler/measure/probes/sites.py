"""Where an operation belongs: the user's line, and the module that runs.

Both as a captured graph's nodes have them (`compiler/graphs/lines.py`, `nodes.module_path`), so
that an eager operation and the node of the same line can be told to be the same.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)

import compiler
from compiler.graphs.lines import outside_torch
from compiler.graphs.nodes import readable_path
from compiler.trace.records import Location

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(compiler.__file__)))
_OURS = tuple(os.path.join(_ROOT, name, "") for name in ("compiler", "workbench", "viewers"))
_ENGINE = os.path.join("torch", "autograd", "graph.py")


class Site(NamedTuple):
    """A line of the user's file in one module instance."""

    module: str
    file: str
    line: int


@lru_cache(maxsize=4096)
def users(file: str) -> bool:
    """Whether a file is the user's or a library's: not torch's, Python's or ours."""
    return outside_torch(file) and not file.startswith(_OURS)


class Stack(NamedTuple):
    """Python frames of the user above one operation."""

    places: tuple[Location, ...]
    """Outermost first."""
    in_backward: bool
    """Autograd's engine called them: a custom backward, or a forward that is computed again."""


def user_stack(frame: FrameType | None, until: FrameType | None) -> Stack:
    """The user's frames from `frame` outwards. It ends at `until`, which is left out, and where
    autograd's engine begins: what is above that called the backward, and made no operation."""
    found: list[Location] = []
    in_backward = False
    while frame is not None and frame is not until:
        code = frame.f_code
        file = code.co_filename
        if users(file):
            found.append(Location(file=file, line=frame.f_lineno or 0, function=code.co_name))
        elif code.co_name == "_engine_run_backward" and file.endswith(_ENGINE):
            in_backward = True
            break
        frame = frame.f_back
    return Stack(tuple(reversed(found)), in_backward)


class ModulePaths:
    """Which module runs, while `following`: by its path from the model."""

    def __init__(self, model: Callable[..., Any]) -> None:
        self._names: dict[int, list[str]] = {}
        self._kept: list[torch.nn.Module] = []  # an id is a module's as long as it lives
        for name, module in named_roots(model):
            for path, inner in module.named_modules(remove_duplicate=False):
                full = ".".join(part for part in (name, path) if part)
                self._names.setdefault(id(inner), []).append(full)
                self._kept.append(inner)
        self._running: list[str] = []

    @property
    def path(self) -> str:
        """`layers.0.attention`; "" in the model itself, and outside of it."""
        return self._running[-1] if self._running else ""

    @property
    def inside(self) -> bool:
        """Whether any module runs."""
        return bool(self._running)

    @contextmanager
    def following(self) -> Iterator[None]:
        """Modules are told by torch's hooks on all of them, which see what a backward runs, too."""
        before = register_module_forward_pre_hook(self._enter)
        after = register_module_forward_hook(self._leave, always_call=True)
        self._running.clear()
        try:
            yield
        finally:
            before.remove()
            after.remove()
            self._running.clear()

    def _enter(self, module: torch.nn.Module, inputs: Any) -> None:
        self._running.append(self._path_of(module))

    def _leave(self, module: torch.nn.Module, inputs: Any, output: Any) -> None:
        if self._running:
            self._running.pop()

    def _path_of(self, module: torch.nn.Module) -> str:
        """Its first path below the module that runs, else its first."""
        names = self._names.get(id(module))
        if names is None:
            return self.path
        parent = self.path
        below = (name for name in names if parent and name.startswith(f"{parent}."))
        return next(below, names[0])


def named_roots(model: Callable[..., Any]) -> list[tuple[str, torch.nn.Module]]:
    """The modules that a model is made of: itself, or what a function finds in its closure and
    among its globals, by the name that it has there."""
    if isinstance(model, torch.nn.Module):
        return [("", model)]
    owner = getattr(model, "__self__", None)
    function = getattr(model, "__func__", model)
    found: list[tuple[str, torch.nn.Module]] = []
    if isinstance(owner, torch.nn.Module):
        found.append(("", owner))
    code = getattr(function, "__code__", None)
    if code is None:
        return found
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        try:
            value = cell.cell_contents
        except ValueError:  # not filled yet
            continue
        if isinstance(value, torch.nn.Module):
            found.append((readable_path(f"L['{name}']"), value))
    for name in code.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, torch.nn.Module):
            found.append((readable_path(f"G['{name}']"), value))
    return found


def caller(depth: int = 1) -> FrameType:
    """The frame that called the function which asks, `depth` further out."""
    return sys._getframe(depth + 1)


def same_sites(captured: Iterable[Site], eager: Iterable[Site]) -> dict[Site, tuple[Site, ...]]:
    """For each site of captured graphs, the sites of the eager call that it stands for.

    A frame that Dynamo compiles by itself (below a graph break) knows its modules by their paths
    from there: it stands for each instance whose path ends so. A site that eager does not have
    stands for none.
    """
    by_line: dict[tuple[str, int], dict[str, Site]] = {}
    for site in eager:
        by_line.setdefault((site.file, site.line), {})[site.module] = site
    found: dict[Site, tuple[Site, ...]] = {}
    for site in captured:
        there = by_line.get((site.file, site.line), {})
        if site.module in there:
            found[site] = (there[site.module],)
        else:
            tail = f".{site.module}" if site.module else ""
            found[site] = tuple(other for module, other in there.items() if module.endswith(tail))
    return found
