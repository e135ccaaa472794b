"""Hooks: one private or public entry point of torch each, checked before use.

Each hook has its own module. `check` looks for what the hook needs; `install` patches it and
returns a function that undoes the patch. If this torch lacks something, the hook is reported as
"not available in torch X.Y": never a crash, never silent.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compiler.control.recorder import Recorder
from compiler.control.tried_on import TRIED_ON
from compiler.trace.records import HookStatus, Stage

Uninstall = Callable[[], None]


class Missing(Exception):
    """This torch lacks what a hook needs; the message says what."""


@dataclass(frozen=True)
class Hook:
    """One way into torch."""

    name: str
    """Short and stable: `graph breaks`."""
    offers: str
    """What the hook records, as text for `tcw doctor`."""
    needs: tuple[str, ...]
    """`module:Name.attribute`, each of which must exist; a trailing `(a, b)` names parameters."""
    install: Callable[[Recorder], Uninstall]
    stage: Stage
    """The stage it records. A recording that ends earlier never imports what the hook needs."""
    test: str
    """The file that tests it, under `tests/cpu`; `python -m tests.cpu.versions` runs it."""

    def check(self) -> HookStatus:
        """Whether this torch has everything that the hook needs. Imports torch."""
        reason = ""
        for need in self.needs:
            try:
                resolve(need)
            except Missing as missing:
                reason = str(missing)
                break
        return status(self.name, self.offers, reason)


def status(name: str, offers: str, reason: str) -> HookStatus:
    """The status of what needs torch for something. `reason`: why it is not there, or ""."""
    return HookStatus(name, not reason, offers, reason, TRIED_ON.get(name, ()))


def on_demand(_recorder: Recorder) -> Uninstall:
    """`Hook.install` for a measurement that patches torch itself while it runs. A recording
    installs nothing; the hook's check reports beforehand whether this torch has what will be
    needed."""
    return lambda: None


def resolve(need: str) -> object:
    """The object that `module:Name.attribute` names. Raises `Missing` if it does not exist.

    `module:function(a, b)` also demands parameters `a` and `b`, unless the signature is unknown or
    takes arbitrary keywords.
    """
    path, _, wanted = need.partition("(")
    module_name, _, attributes = path.partition(":")
    try:
        found: object = importlib.import_module(module_name)
    except ImportError as error:
        raise Missing(f"not available in torch {torch_version()}: no {module_name}") from error
    for attribute in filter(None, attributes.split(".")):
        try:
            found = getattr(found, attribute)
        except AttributeError as error:
            raise Missing(f"not available in torch {torch_version()}: no {path}") from error
    if wanted:
        _demand_parameters(found, path, [name.strip() for name in wanted.rstrip(")").split(",")])
    return found


def _demand_parameters(found: object, path: str, names: Sequence[str]) -> None:
    try:
        parameters = inspect.signature(found).parameters  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        return
    for name in names:
        if name and name not in parameters:
            raise Missing(
                f"not available in torch {torch_version()}: {path} takes no parameter {name}"
            )


def torch_version() -> str:
    """Version of the installed torch; `?` if there is none."""
    try:
        return str(importlib.import_module("torch").__version__)
    except ImportError:
        return "?"


def install_all(hooks: Sequence[Hook], recorder: Recorder) -> tuple[list[HookStatus], Uninstall]:
    """Install every available hook, in order; returns their statuses and an undo function."""
    statuses: list[HookStatus] = []
    undo: list[Uninstall] = []
    for hook in hooks:
        status = hook.check()
        statuses.append(status)
        if status.available:
            undo.append(hook.install(recorder))

    return statuses, undo_all(undo)


def undo_all(undo: Sequence[Callable[[], object]]) -> Uninstall:
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
