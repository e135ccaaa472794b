"""torch's settings that the recording asks for, while the model is compiled and called."""

from __future__ import annotations

import builtins
import difflib
import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from tcw.compiler.control.torch_settings import SettingError, TorchSetting, read_setting
from tcw.compiler.control.user_error import UserError
from tcw.compiler.graphs.lines import users_own


@contextmanager
def applied(lines: Sequence[str], names: Mapping[str, Any], root: str) -> Iterator[None]:
    """Apply these lines as settings, and undo them at the end.

    `names`: what the user's file binds. A function for a setting that is a set is looked up there,
    then in the user's other modules under `root`. Raises `UserError` for a line that is not a
    setting, and for an unknown name.
    """
    with ExitStack() as stack:
        for line in lines:
            try:
                setting = read_setting(line)
            except SettingError as error:
                raise _bad(str(error)) from error
            module = importlib.import_module(setting.module)
            stack.enter_context(module.patch({setting.name: _value(module, setting, names, root)}))
        yield


def _value(module: Any, setting: TorchSetting, names: Mapping[str, Any], root: str) -> Any:
    try:
        now = module
        for part in setting.name.split("."):
            now = getattr(now, part)
    except AttributeError as error:
        near = difflib.get_close_matches(setting.name, list(module._config), 1)
        hint = f"did you mean {near[0]}?" if near else ""
        raise _bad(f"{setting.module} has no {setting.name}", hint) from error
    if not setting.adds:
        return setting.value
    if not isinstance(now, set):
        raise _bad(f"{setting.module}.{setting.name} is not a set")
    return {*now, _function(setting.adds, names, root)}


def _function(name: str, names: Mapping[str, Any], root: str) -> Any:
    """The value of a dotted name in the user's file, else in another module of theirs."""
    first, *rest = name.split(".")
    users = (
        vars(module)
        for module in list(sys.modules.values())
        if users_own(getattr(module, "__file__", None) or "", root)
    )
    for space in (names, vars(builtins), *users, sys.modules):
        if first not in space:
            continue
        found = space[first]
        try:
            for part in rest:
                found = getattr(found, part)
        except AttributeError:
            continue
        return found
    raise _bad(f"the file has no {name}")


def _bad(words: str, hint: str = "") -> UserError:
    return UserError(f"--set: {words}", type="BadSetting", hint=hint, doing="setting torch up")
