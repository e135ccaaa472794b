"""torch settings that the user's file changes, such as `torch._inductor.config.cpp.simdlen`.

The hook keeps the settings as they were before the file ran; `record_changes` compares. Settings
that the recording makes itself (`--set`) are in `Settings`, and our own are made later.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tcw.compiler.control.hooks import RecordingHook, Uninstall
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.protocol.torch_settings import read_setting
from tcw.compiler.trace.records import TorchSettings

MODULES = (
    "torch._dynamo.config",
    "torch._inductor.config",
    "torch._functorch.config",
    "torch.fx.experimental._config",
)
LONGEST = 200
"""Characters of a value that are kept."""
_KEPT = "torch settings"


def install(recorder: Recorder) -> Uninstall:
    recorder.kept[_KEPT] = _now()
    return lambda: None


def record_changes(recorder: Recorder) -> None:
    """Record what differs from the settings at the start of the recording, if anything does."""
    before = recorder.kept.get(_KEPT)
    if not isinstance(before, dict):
        return
    ours = {
        f"{setting.module}.{setting.name}"
        for setting in map(read_setting, recorder.settings.torch_settings)
    }
    changed = {
        name: _text(value)[:LONGEST]
        for name, value in _now().items()
        if name not in ours and _differs(before.get(name), value)
    }
    if changed:
        recorder.emit(TorchSettings(changed=changed))


def _now() -> dict[str, Any]:
    import torch

    found: dict[str, Any] = {
        f"{module}.{name}": value
        for module in MODULES
        for name, value in importlib.import_module(module).get_config_copy().items()
    }
    return found | {
        "torch.get_default_dtype()": torch.get_default_dtype(),
        "torch.get_float32_matmul_precision()": torch.get_float32_matmul_precision(),
        "torch.are_deterministic_algorithms_enabled()": (
            torch.are_deterministic_algorithms_enabled()
        ),
        "torch.get_num_threads()": torch.get_num_threads(),
    }


def _differs(before: object, after: object) -> bool:
    """By value; functions and other objects, which the settings copy, by their class."""
    if type(before) is not type(after):
        return True
    plain = (bool, int, float, str, list, tuple, dict, set, type(None))
    return _text(before) != _text(after) if isinstance(after, plain) else before != after


def _text(value: object) -> str:
    """Its repr, with sets in order: those of equal sets differ."""
    if isinstance(value, (set, frozenset)):
        return "{" + ", ".join(sorted(map(_text, value))) + "}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_text(one)}" for key, one in value.items()) + "}"
    if type(value) is list:
        return "[" + ", ".join(map(_text, value)) + "]"
    if type(value) is tuple:
        return "(" + ", ".join(map(_text, value)) + ("," if len(value) == 1 else "") + ")"
    return repr(value)


_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{3,}")


def setting_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Setting -> `VARIABLE=value`, for each variable that is set and from which torch has taken a
    setting; those of `MODULES` that are imported. It is read from a module's text, where a default
    is an expression such as `os.environ.get("TORCHINDUCTOR_MAX_AUTOTUNE") == "1"`."""
    found: dict[str, str] = {}
    for module in MODULES:
        file = getattr(sys.modules.get(module), "__file__", None)
        try:
            text = Path(file).read_text(encoding="utf-8") if file else ""
            wanted = {name for name in _VARIABLE.findall(text) if name in environ}
            tree = ast.parse(text) if wanted else ast.Module([], [])
        except (OSError, ValueError, SyntaxError):
            continue
        for setting, variable in _read(tree.body, module):
            if variable in wanted:
                found.setdefault(setting, f"{variable}={environ[variable][:LONGEST]}")
    return found


def _read(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, str]]:
    """(setting, variable) for each text in an assigned expression that may be a variable's name."""
    for one in body:
        if isinstance(one, ast.ClassDef):
            yield from _read(one.body, f"{prefix}.{one.name}")
        elif isinstance(one, (ast.If, ast.Try)):
            yield from _read(one.body, prefix)
        elif isinstance(one, (ast.Assign, ast.AnnAssign)) and one.value is not None:
            targets = one.targets if isinstance(one, ast.Assign) else [one.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            for node in ast.walk(one.value):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    for name in names:
                        yield f"{prefix}.{name}", node.value


HOOK = RecordingHook(
    name="torch settings",
    offers="torch settings that the user's file changes",
    needs=tuple(f"{module}:get_config_copy" for module in MODULES),
    install=install,
    stage="load",
    test="capture/test_settings.py",
)
