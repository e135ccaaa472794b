"""Hooks: what one module of ours uses of torch beyond its public functions, checked before use.

Each hook has its own module. `check` looks for what the hook needs; if this torch lacks something,
the hook is reported as "not available in torch X.Y": never a crash, never silent. A `RecordingHook`
patches torch while something is recorded: `install` returns a function that undoes the patch.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.tried_on import TRIED_ON
from tcw.compiler.trace.records import HookStatus, Stage

if sys.version_info >= (3, 14):
    from annotationlib import Format

    _UNEVALUATED = {"annotation_format": Format.FORWARDREF}
else:
    _UNEVALUATED: dict[str, Any] = {}

Uninstall = Callable[[], None]


class Missing(Exception):
    """This torch lacks what a hook needs; the message says what."""


@dataclass(frozen=True, kw_only=True)
class Hook:
    """One way into torch."""

    name: str
    """Short and stable: `graph breaks`."""
    offers: str
    """What it is for, as text for `tcw doctor`."""
    needs: tuple[str, ...]
    """`module:Name.attribute`, each of which must exist; a trailing `(a, b)` names parameters."""
    test: str
    """The file that tests it, under `tests/cpu`; `python -m tests.cpu.versions` runs it."""
    further: Callable[[], str] = lambda: ""
    """Looks for what `needs` cannot name: why it is not there, or ""."""

    def missing(self, later: str = "") -> str:
        """Why this torch cannot support the hook; "" if it can. Imports the modules of `needs`, and
        looks for nothing in the module `later`."""
        for need in self.needs:
            if later and need.startswith(f"{later}:"):
                continue
            try:
                resolve(need)
            except Missing as missing:
                return str(missing)
        return self.further()

    def check(self, later: str = "") -> HookStatus:
        """Whether this torch has everything that the hook needs, but for the module `later`."""
        reason = self.missing(later)
        return HookStatus(self.name, not reason, self.offers, reason, TRIED_ON.get(self.name, ()))


@dataclass(frozen=True, kw_only=True)
class RecordingHook(Hook):
    """A checked patch of torch that records one kind of fact."""

    install: Callable[[Recorder], Uninstall]
    stage: Stage
    """The stage it records. A recording that ends earlier never imports what the hook needs."""
    later: str = ""
    """A module whose import changes the thread that imports it, so that a recording must not be the
    first to import it: `install` leaves it alone until the program does (`when_imported`)."""


def resolve(need: str) -> object:
    """The object that `module:Name.attribute` names. Raises `Missing` if it does not exist.

    `module:function(a, b)` also demands parameters `a` and `b`, unless the signature is unknown or
    takes arbitrary keywords.
    """
    path, _, wanted = need.partition("(")
    module_name, _, attributes = path.partition(":")
    package = module_name.partition(".")[0]
    try:
        found: object = importlib.import_module(module_name)
    except ImportError as error:
        raise lacking(f"no {module_name}", package) from error
    for attribute in filter(None, attributes.split(".")):
        try:
            found = getattr(found, attribute)
        except AttributeError as error:
            raise lacking(f"no {path}", package) from error
    if wanted:
        names = [name.strip() for name in wanted.rstrip(")").split(",")]
        _demand_parameters(found, path, package, names)
    return found


def lacking(what: str, package: str = "torch") -> Missing:
    """`not available in torch 2.13.0: {what}`."""
    return Missing(f"not available in {package} {version_of(package)}: {what}")


def _demand_parameters(found: object, path: str, package: str, names: Sequence[str]) -> None:
    try:
        parameters = signature_of(found).parameters  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        return
    for name in names:
        if name and name not in parameters:
            raise lacking(f"{path} takes no parameter {name}", package)


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """As `inspect.signature`, but evaluates no annotation that Python 3.14 has deferred: it may
    name what only a type checker imports. Raises TypeError and ValueError where Python cannot
    tell."""
    return inspect.signature(function, **_UNEVALUATED)


def version_of(package: str) -> str:
    """Version of an installed package; `?` if there is none."""
    try:
        return str(importlib.import_module(package).__version__)
    except (ImportError, AttributeError):
        return "?"


def install_all(
    hooks: Sequence[RecordingHook], recorder: Recorder
) -> tuple[list[HookStatus], Uninstall]:
    """Install every available hook, in order; returns their statuses and an undo function."""
    statuses: list[HookStatus] = []
    undo: list[Uninstall] = []
    for hook in hooks:
        status = hook.check(hook.later)
        statuses.append(status)
        if status.available:
            undo.append(hook.install(recorder))
    return statuses, undo_all(*undo)


def undo_all(*undo: Callable[[], object]) -> Uninstall:
    """One undo for several, in reverse order; a second call does nothing."""
    left = list(undo)

    def uninstall() -> None:
        while left:
            left.pop()()

    return uninstall


def patch(owner: object, name: str, replacement: object) -> Uninstall:
    """Set `owner.name`; returns an undo function that restores exactly the previous state."""
    own = vars(owner) if hasattr(owner, "__dict__") else {}
    had = name in own
    before = own[name] if had else getattr(owner, name)
    setattr(owner, name, replacement)

    def undo() -> None:
        if had:
            setattr(owner, name, before)
        else:
            delattr(owner, name)

    return undo


@contextmanager
def during(undo: Uninstall) -> Iterator[None]:
    """What `undo` undoes holds inside the block."""
    try:
        yield
    finally:
        undo()


def before_call(owner: object, name: str, note: Callable[..., object]) -> Uninstall:
    """From here on, a call of `owner.name` first calls `note` with the same arguments."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def called(*args: Any, **kwargs: Any) -> Any:
        note(*args, **kwargs)
        return original(*args, **kwargs)

    return _patch_function(owner, name, called)


def after_call(owner: object, name: str, note: Callable[..., object]) -> Uninstall:
    """From here on, a call of `owner.name` that returns calls `note` with its result and its
    arguments."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def called(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        note(result, *args, **kwargs)
        return result

    return _patch_function(owner, name, called)


def around_call(
    owner: object, name: str, context: Callable[..., AbstractContextManager[Any]]
) -> Uninstall:
    """From here on, a call of `owner.name` runs inside `context`, which is given its arguments.
    What the block yields, if anything, is then called with the result."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def called(*args: Any, **kwargs: Any) -> Any:
        with context(*args, **kwargs) as note:
            result = original(*args, **kwargs)
            if note is not None:
                note(result)
        return result

    return _patch_function(owner, name, called)


def _patch_function(owner: object, name: str, function: Callable[..., Any]) -> Uninstall:
    bound = isinstance(inspect.getattr_static(owner, name), staticmethod | classmethod)
    return patch(owner, name, staticmethod(function) if bound else function)
