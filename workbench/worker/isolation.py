"""Hides our packages, since the user's project may have its own `compiler`, `viewers`, `workbench`.

All of ours that the worker needs is imported before; afterwards these names belong to the user's
project. Nothing of ours may be imported later (a test looks for such imports).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

PACKAGES = ("compiler", "viewers", "workbench", "sample_models")

_kept: dict[str, ModuleType] = {}
"""Keeps our modules alive: a module that is deleted loses its globals."""


def step_aside() -> None:
    """Take our names out of `sys.modules` and our finder off `sys.meta_path`."""
    door = sys.modules["__main__"]
    finder = vars(door).get("Ours")
    sys.meta_path[:] = [found for found in sys.meta_path if found is not finder]
    _kept.update(_taken_out())
    _kept["__main__"] = door
    sys.modules["__main__"] = ModuleType("__main__")


@contextmanager
def ours_again() -> Iterator[None]:
    """Make our packages importable inside the block, and the user's not. Only for code of ours that
    runs nothing of the user's."""
    door = _kept.get("__main__")
    if door is None:  # ours are not hidden yet
        yield
        return
    theirs = _taken_out()
    sys.modules.update((name, found) for name, found in _kept.items() if name != "__main__")
    finder = vars(door).get("Ours")
    if finder is not None:
        sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        if finder is not None:
            sys.meta_path.remove(finder)
        _kept.update(_taken_out())
        sys.modules.update(theirs)


def _taken_out() -> dict[str, ModuleType]:
    """The modules of our names, which `sys.modules` does not hold while they are hidden."""
    return {
        name: sys.modules.pop(name)
        for name in list(sys.modules)
        if name.partition(".")[0] in PACKAGES
    }


def prepare_path(folder: str, arguments: list[str]) -> None:
    """Give the script what Python would: its folder first on `sys.path`, its own `sys.argv`.

    Nothing is written next to the user's files, so their bytecode is not cached.
    """
    sys.path.insert(0, folder)
    sys.argv = arguments
    sys.dont_write_bytecode = True
