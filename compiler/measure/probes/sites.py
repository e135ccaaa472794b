"""Where an operation belongs: the user's line, and the running module.

Both are in the form of a captured graph's nodes (`compiler/graphs/lines.py`, `nodes.module_path`),
so that an eager operation can be matched with the node of the same line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import FrameType
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from tcw.compiler.graphs.lines import is_own_file, outside_torch
from tcw.compiler.graphs.nodes import readable_path
from tcw.compiler.trace.records import Location

_DEPTH = 32
_ENGINE = os.path.join("torch", "autograd", "graph.py")


@lru_cache(maxsize=4096)
def users(file: str) -> bool:
    """Whether a file is the user's or a library's: not torch's, Python's or ours."""
    return outside_torch(file) and not is_own_file(file)


def stack_above(frame: FrameType | None, until: FrameType | None) -> tuple[Location, ...]:
    """The user's frames from `frame` outwards, outermost first.

    Stops at `until`, which is left out, and where autograd's engine begins: frames above that
    called the backward, but ran no operation.
    """
    locations: list[Location] = []
    while frame is not None and frame is not until:
        code = frame.f_code
        file = code.co_filename
        if users(file):
            locations.append(Location(file=file, line=frame.f_lineno or 0, function=code.co_name))
        elif code.co_name == "_engine_run_backward" and file.endswith(_ENGINE):
            break
        frame = frame.f_back
    return tuple(reversed(locations))


class ModulePaths:
    """Which module runs, by its path from the model; tracked inside `following`.

    A module reachable by several paths has the first, in torch's naming order. `canonical` maps the
    other paths, which captured graphs may use, to it.
    """

    def __init__(self, model: Callable[..., Any]) -> None:
        self._of_module: dict[int, str] = {}
        self._canonical: dict[str, str] = {}
        self._kept: list[torch.nn.Module] = []  # keeps modules alive, so that their ids stay valid
        for name, module in named_roots(model):
            self._take(name, module)
        self._running: list[str] = []

    @property
    def path(self) -> str:
        """`layers.0.attention`; "" in the model itself and outside it."""
        return self._running[-1] if self._running else ""

    def canonical(self, path: str) -> str:
        """The first path of the module at this path; unchanged if there is no such module."""
        return self._canonical.get(path, path)

    @contextmanager
    def following(self) -> Iterator[None]:
        """Track modules by torch's global module hooks, which also see what a backward runs."""
        before = register_module_forward_pre_hook(self._enter)
        after = register_module_forward_hook(self._leave, always_call=True)
        self._running.clear()
        try:
            yield
        finally:
            before.remove()
            after.remove()
            self._running.clear()

    def _take(self, root: str, module: torch.nn.Module) -> None:
        for path, inner in _inner_modules(module):
            full = ".".join(part for part in (root, path) if part)
            self._canonical[full] = self._of_module.setdefault(id(inner), full)
            self._kept.append(inner)

    def _enter(self, module: torch.nn.Module, inputs: Any) -> None:
        path = self._of_module.get(id(module))
        if path is None:
            self._take(_global_name(module, sys._getframe(1)) or self.path, module)
            path = self._of_module[id(module)]
        self._running.append(path)

    def _leave(self, module: torch.nn.Module, inputs: Any, output: Any) -> None:
        if self._running:
            self._running.pop()


def _inner_modules(module: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Module]]:
    """A module and all modules below it, by path, under each of their names; including those in
    plain lists and dictionaries, which torch does not count as submodules."""
    waiting: list[tuple[str, torch.nn.Module, int]] = [("", module, 0)]
    while waiting:
        path, found, depth = waiting.pop(0)
        yield path, found
        if depth < _DEPTH:
            below = f"{path}." if path else ""
            waiting += [
                (f"{below}{name}", inner, depth + 1)
                for name, inner in (*found._modules.items(), *_in_containers(found))
                if inner is not None
            ]


def _in_containers(module: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Module]]:
    for name, value in list(vars(module).items()):
        if name.startswith("_") or not isinstance(value, (list, tuple, dict)):
            continue
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            if isinstance(inner, torch.nn.Module):
                yield f"{name}.{key}", inner


def _global_name(module: torch.nn.Module, frame: FrameType | None) -> str:
    """The name that the innermost user function above uses for a module that is a global of its
    file."""
    while frame is not None and not users(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is not None:
        for name in frame.f_code.co_names:
            if frame.f_globals.get(name) is module:
                return readable_path(f"G['{name}']")
    return ""


def named_roots(model: Callable[..., Any]) -> list[tuple[str, torch.nn.Module]]:
    """The modules that a model consists of: itself, or those in a function's closure and globals,
    by their names there."""
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
    """The frame that called the function which calls this one, `depth` further out."""
    return sys._getframe(depth + 1)
