"""The entry point: starts tcw with its own packages, whatever packages the user's project has.

The debugged project may have top-level packages named `compiler`, `viewers` or `workbench`, and
PYTHONPATH may put them first. While `Ours` is on `sys.meta_path`, these names refer to the packages
next to this file; the worker removes it before the user's file is loaded.

It is also the entry point of our compiler: `torch.compile(model, backend="tcw")` finds `backend`
here.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = ("compiler", "viewers", "workbench", "sample_models")


class Ours:
    """Finds our top-level packages next to this file, and nothing else."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return PathFinder.find_spec(name, [HERE]) if name in PACKAGES else None


def backend(graph_module: Any, example_inputs: Sequence[Any], **options: Any) -> Any:
    """The backend `tcw` of torch.compile. Our compiler is imported for the first graph."""
    return _engine()(graph_module, example_inputs, **options)


backend.__name__ = "tcw"  # torch's messages use this name

_kept: dict[str, ModuleType] = {}
"""Keeps our modules alive: a module that is freed loses its globals."""


@functools.cache
def _engine() -> Callable[..., Any]:
    """Our compiler, imported so that neither side sees the other's packages. Raises RuntimeError,
    with the name, if torch lacks a private one that it cannot do without."""
    with _apart():
        try:
            from compiler.engine.backend import backend as engine
        except (ImportError, AttributeError) as error:
            from compiler.engine.requirements import HOOK

            if missing := HOOK.missing():
                raise RuntimeError(f'backend="tcw" is {missing}') from error
            raise
    return engine


@contextmanager
def _apart() -> Iterator[None]:
    """Import ours in the block, although the program may have packages of the same names.

    The user's modules with our names are set aside, and restored after the block. Ours are then
    removed from `sys.modules`, unless they were there before.
    """
    present = {name: sys.modules[name] for name in list(sys.modules) if _is_named_like_ours(name)}
    root = getattr(present.get("compiler"), "__file__", None) or ""
    ours_before = os.path.dirname(os.path.dirname(os.path.abspath(root))) == HERE
    if not ours_before:
        for name in present:
            del sys.modules[name]
        sys.modules.update(_kept)
    sys.meta_path.insert(0, Ours)
    try:
        yield
    finally:
        sys.meta_path.remove(Ours)
        if not ours_before:
            for name in list(sys.modules):
                if _is_named_like_ours(name):
                    _kept[name] = sys.modules.pop(name)
            sys.modules.update(present)


def record_process(folder: str) -> None:
    """Record this process from now on into a new trace in `folder`: what `tcw_start` calls at the
    first compile. Raises ImportError where something of ours is missing, OSError where the trace
    cannot be written."""
    with _apart(), _dependencies():
        from workbench.worker.own_process import begin

        begin(folder)


@contextmanager
def _dependencies() -> Iterator[None]:
    """Find msgspec where `tcw run` has it, if this Python has none."""
    folder = os.environ.get("TCW_PACKAGES", "")

    class Found:
        @staticmethod
        def find_spec(
            name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
        ) -> ModuleSpec | None:
            return PathFinder.find_spec(name, [folder]) if name == "msgspec" else None

    sys.meta_path.append(Found)
    try:
        yield
    finally:
        sys.meta_path.remove(Found)


def record(trace: str | os.PathLike[str] | None = None) -> AbstractContextManager[Any]:
    """Record what the block compiles: `with tcw.record("run.tcw") as recording: …`.

    The recording has `.graphs`, `.breaks`, `.recompiles`, `.kernels`, `.findings` and
    `.fused("softmax", "add")`; printed, it is the report of `tcw explain`. `trace` is a file for
    `tcw open`. Raises OSError if that cannot be written.
    """
    return recorder()(trace, file=sys._getframe(1).f_code.co_filename)


def explain(model: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Compile `model`, call it once with these arguments, and return the recording.

    In this process, on the model itself; what was compiled before is dropped, as by
    `torch._dynamo.reset`. For other options of torch.compile pass `torch.compile(model, …)`. The
    recording is that of `record`: printed, or as the last line of a notebook's cell, it is the
    report. Nothing is timed. Raises what the call raises.
    """
    return library().explain(model, args, kwargs, file=sys._getframe(1).f_code.co_filename)


def recorder() -> Callable[..., AbstractContextManager[Any]]:
    """`workbench.library.record`."""
    record: Callable[..., AbstractContextManager[Any]] = library().record
    return record


def library() -> Any:
    """The module `workbench.library`.

    Raises RuntimeError if the program has packages with the names of ours: `tcw run` and
    `tcw explain` can record it all the same.
    """
    for name in PACKAGES:
        file = getattr(sys.modules.get(name), "__file__", None) or ""
        if name in sys.modules and os.path.dirname(os.path.dirname(os.path.abspath(file))) != HERE:
            raise RuntimeError(
                f"this program has a package {name!r} of its own, so tcw cannot be loaded into it"
            )
    sys.meta_path.insert(0, Ours)
    try:
        import workbench.library
    finally:
        sys.meta_path.remove(Ours)
    return workbench.library


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
