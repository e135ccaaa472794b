"""The door: starts tcw with its own packages, whatever packages the user's project has.

The project that is debugged may hold top-level packages named `compiler`, `viewers` or
`workbench`, and PYTHONPATH may put them first. While `Ours` stands on `sys.meta_path`, these names
mean the packages beside this file; the worker takes it away before the user's file loads.

It is also the door to our compiler: `torch.compile(model, backend="tcw")` finds `backend` here.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = ("compiler", "viewers", "workbench", "sample_models")


class Ours:
    """Finds our top-level packages beside this file, and nothing else."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return PathFinder.find_spec(name, [HERE]) if name in PACKAGES else None


def backend(graph_module: Any, example_inputs: Sequence[Any], **options: Any) -> Any:
    """The backend `tcw` of torch.compile. Our compiler is imported when a first graph comes."""
    return _engine()(graph_module, example_inputs, **options)


backend.__name__ = "tcw"  # what torch calls it in its messages

_kept: dict[str, ModuleType] = {}
"""Our modules stay alive here: a module that dies takes its globals with it."""


@functools.cache
def _engine() -> Callable[..., Any]:
    """Our compiler, imported so that neither side sees the other's packages.

    Modules of the user's under our names are put aside for the import and back after it, and ours
    are taken out of `sys.modules` again, unless they were there before.
    """
    present = {name: sys.modules[name] for name in list(sys.modules) if _is_named_like_ours(name)}
    root = getattr(present.get("compiler"), "__file__", None) or ""
    ours_before = os.path.dirname(os.path.dirname(os.path.abspath(root))) == HERE
    if not ours_before:
        for name in present:
            del sys.modules[name]
    sys.meta_path.insert(0, Ours)
    try:
        from compiler.engine.backend import backend as engine
    finally:
        sys.meta_path.remove(Ours)
        if not ours_before:
            for name in list(sys.modules):
                if _is_named_like_ours(name):
                    _kept[name] = sys.modules.pop(name)
            sys.modules.update(present)
    return engine


def _is_named_like_ours(name: str) -> bool:
    return name.partition(".")[0] in PACKAGES


def main() -> None:
    """The `tcw` command."""
    sys.meta_path.insert(0, Ours)
    from workbench.cli import run

    run()


def worker() -> None:
    """The child process: `python tcw.py --worker …`."""
    sys.meta_path.insert(0, Ours)
    from workbench.worker.process import run

    run(sys.argv[2:])


def page() -> None:
    """The workbench behind one page of `tcw serve`: `python tcw.py --page …`."""
    sys.meta_path.insert(0, Ours)
    from workbench.web.page import run

    run(sys.argv[2:])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker()
    elif sys.argv[1:2] == ["--page"]:
        page()
    else:
        main()
