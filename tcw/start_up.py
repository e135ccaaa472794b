"""Start-up of a recorded program: with `TCW_RECORD=FOLDER`, a process records what it compiles.

`install` runs in every Python process that has the variable: from `start_up.pth` where tcw is
installed, and from `workbench/start_up/sitecustomize.py`, which `tcw run` puts on PYTHONPATH, in
any other Python. It imports nothing but the standard library, and waits for torch's first compile:
only then are tcw and its hooks loaded, and a trace is opened. A forked child waits again, so that
it gets a trace of its own if it compiles anything new.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from types import ModuleType
from typing import Any

VARIABLE = "TCW_RECORD"
"""The folder for the traces."""
SAMPLE_VARIABLE = "TCW_SAMPLE"
"""The most bytes of each trace, such as `100MB`."""
PACKAGES_VARIABLE = "TCW_PACKAGES"
"""A folder with tcw's one dependency, msgspec, for a Python that has none."""
HERE = os.path.dirname(os.path.abspath(__file__))
_AWAITED = "torch._dynamo.convert_frame"
"""torch's module that compiles frames; not imported by a program that compiles nothing."""
_installed = False


def install() -> None:
    """Record this process from its first compile on, if `TCW_RECORD` names a folder."""
    global _installed
    folder = os.environ.get(VARIABLE)
    if folder and not _installed:
        _installed = True
        when_imported(_AWAITED, _Start(os.path.abspath(folder)).wait_in)


def when_imported(name: str, then: Callable[[ModuleType], object]) -> Callable[[], None]:
    """Call `then` with the module: now, or as soon as something imports it. Returns a function that
    stops waiting."""
    if name in sys.modules:
        then(importlib.import_module(name))  # waits if another thread is importing it
        return lambda: None
    watch = _Watch(name, then)
    sys.meta_path.insert(0, watch)
    return watch.remove


class _Watch:
    """Finds no module; learns when one is imported, and removes itself."""

    def __init__(self, name: str, then: Callable[[ModuleType], object]) -> None:
        self.name = name
        self.then = then

    def remove(self) -> None:
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self.name:
            return None
        self.remove()
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loading(spec.loader, self.then)
                return spec
        return None


class _Loading(Loader):
    """Loads a module as its own loader does, which the module then has again."""

    def __init__(self, own: Any, then: Callable[[ModuleType], object]) -> None:
        self.own = own
        self.then = then

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        created: ModuleType | None = self.own.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self.own
        if module.__spec__ is not None:
            module.__spec__.loader = self.own
        self.own.exec_module(module)
        self.then(module)


class _Start:
    """Opens the recording at the first compile of this process, and of each forked child."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.lock = threading.RLock()
        self.begun = False
        self.beginning = False

    def wait_in(self, module: ModuleType) -> None:
        """Begin when this module, `convert_frame`, is asked for its first frame."""
        wrapper: Any = getattr(module, "CatchErrorsWrapper", None)
        if wrapper is None:
            _say(f"nothing is recorded: this torch has no {_AWAITED}.CatchErrorsWrapper")
            return
        original = wrapper.__call__  # to compile a frame; compiled code does not call it

        @functools.wraps(original)
        def first(*arguments: Any, **options: Any) -> Any:
            if self.begun or not self._begins():
                return original(*arguments, **options)
            return wrapper.__call__(*arguments, **options)  # now with the hooks around this

        wrapper.__call__ = first
        os.register_at_fork(after_in_child=self._forked)

    def _begins(self) -> bool:
        """Whoever compiles first begins; other threads wait until all hooks are in place. False if
        this is a compile by what begins."""
        with self.lock:
            if self.beginning:
                return False
            if self.begun:
                return True
            self.beginning = True
            try:
                _record(self.folder)
            except Exception as error:  # the program goes on
                version = ".".join(map(str, sys.version_info[:3]))
                self._not_recorded(f"{type(error).__name__}: {error} (Python {version})")
            finally:
                self.beginning, self.begun = False, True
            return True

    def _forked(self) -> None:
        self.lock = threading.RLock()
        self.begun = self.beginning = False

    def _not_recorded(self, why: str) -> None:
        """Leave a note for `tcw run`; a program that records by the variable alone says so."""
        with contextlib.suppress(OSError):
            os.makedirs(self.folder, exist_ok=True)
            file = os.path.join(self.folder, f"not-recorded-{os.getpid()}.txt")
            with open(file, "x", encoding="utf-8", errors="replace") as stream:
                stream.write(f"{' '.join(why.split())}\n")
        _say(f"process {os.getpid()} is not recorded: {why}")


def _record(folder: str) -> None:
    """Record this process from now on into a new trace in `folder`. Raises ImportError where
    something of ours is missing, OSError where the trace cannot be written."""
    ours = os.path.realpath(os.path.join(HERE, "__init__.py"))
    if "tcw" not in sys.modules:
        spec = PathFinder.find_spec("tcw", [os.path.dirname(HERE)])
        if spec is None or spec.loader is None:
            raise ImportError(f"no tcw in {HERE}")
        sys.modules["tcw"] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules["tcw"])
    elif os.path.realpath(theirs := getattr(sys.modules["tcw"], "__file__", None) or "?") != ours:
        raise ImportError(f"the program has a package tcw of its own: {theirs}")
    with _dependencies():
        from tcw.workbench.worker.own_process import begin

        begin(folder)


@contextlib.contextmanager
def _dependencies() -> Iterator[None]:
    """Find msgspec where `tcw run` has it, if this Python has none."""
    folder = os.environ.get(PACKAGES_VARIABLE, "")

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


def _say(words: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"tcw: {words}\n".encode(errors="replace"))
