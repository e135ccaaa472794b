"""The door: starts tcw with its own packages, whatever packages the user's project has.

The project that is debugged may hold top-level packages named `compiler`, `viewers` or
`workbench`, and PYTHONPATH may put them first. While `Ours` stands on `sys.meta_path`, these names
mean the packages beside this file; the worker takes it away before the user's file loads.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = ("compiler", "viewers", "workbench", "sample_models")


class Ours:
    """Finds our top-level packages beside this file, and nothing else."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return PathFinder.find_spec(name, [HERE]) if name in PACKAGES else None


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


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker()
    else:
        main()
