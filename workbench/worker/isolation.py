"""Our packages step aside: the user's project may have its own `compiler`, `viewers`, `workbench`.

Everything of ours that the worker needs is imported before; from here on these names mean what
the user's project says. Nothing of ours may be imported later (a test looks for such imports).
"""

from __future__ import annotations

import sys
from types import ModuleType

PACKAGES = ("compiler", "viewers", "workbench", "sample_models")

_kept: dict[str, ModuleType] = {}
"""Our modules stay alive here: a module that dies takes its globals with it."""


def step_aside() -> None:
    """Take our names out of `sys.modules` and our finder off `sys.meta_path`."""
    door = sys.modules["__main__"]
    finder = vars(door).get("Ours")
    sys.meta_path[:] = [found for found in sys.meta_path if found is not finder]
    for name in list(sys.modules):
        if name.partition(".")[0] in PACKAGES:
            _kept[name] = sys.modules.pop(name)
    _kept["__main__"] = door
    sys.modules["__main__"] = ModuleType("__main__")


def prepare_path(folder: str, arguments: list[str]) -> None:
    """What Python gives a script: its folder first on `sys.path`, its own `sys.argv`.

    Nothing is written beside the user's files, so no bytecode of theirs is cached.
    """
    sys.path.insert(0, folder)
    sys.argv = arguments
    sys.dont_write_bytecode = True
