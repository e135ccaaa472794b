"""torch's source expressions in the user's terms: `L['self']._modules['ln'].eps` -> `self.ln.eps`.

Sources are Python expressions over `L` (locals of the frame) and `G` (globals); see
torch/_dynamo/source.py.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

_AMBIENT = {
    "SHAPE_ENV": "symbolic shapes",
    "GRAD_MODE": "grad mode",
    "GLOBAL_STATE": "global state",
    "DETERMINISTIC_ALGORITHMS": "deterministic algorithms",
    "TORCH_FUNCTION_STATE": "torch function modes",
    "DEFAULT_DEVICE": "default device",
    "FSDP_TRAINING_STATE": "FSDP training state",
    "AUTOGRAD_SAVED_TENSORS_HOOKS": "saved-tensor hooks",
}
"""Guards on the state around the frame, which have no source."""

_MODULE_FIELDS = "_modules|_parameters|_buffers|__dict__"
_REPLACEMENTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"G\['__builtins_dict___\d+'\]\['(\w+)'\]"), r"\1"),
    (re.compile(r"[LG]\['([^']+)'\]"), r"\1"),
    (re.compile(r"__import__\('([\w.]+)'\)"), r"\1"),
    (re.compile(rf"\.(?:{_MODULE_FIELDS})\['(\d+)'\]"), r"[\1]"),
    (re.compile(rf"\.(?:{_MODULE_FIELDS})\['([^'.]+)'\]"), r".\1"),
    (re.compile(r"\.(size|stride)\(\)\[(-?\d+)\]"), r".\1(\2)"),
    (re.compile(r"list\(dict\.keys\(([^()]+)\)\)"), r"list(\1.keys())"),
)
_IMPORT = re.compile(r"__import_(\w+)")
_CLASS = re.compile(r"^<class '(?:[\w<>]+\.)*(?P<name>\w+)'>$")
ATEN_DTYPES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16",
    "Long": "int64", "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8",
    "Bool": "bool", "ComplexFloat": "complex64", "ComplexDouble": "complex128",
}  # fmt: skip
"""ATen's name of a dtype -> torch's."""

SOURCE = re.compile(
    r"[LG]\[(?:'[^']*'|\"[^\"]*\")\]"
    r"(?:\.[A-Za-z_]\w*(?:\(\))?|\[(?:-?\d+|'[^']*'|\"[^\"]*\")\])*"
)
"""A source expression inside torch's text of a condition."""


@functools.lru_cache(maxsize=16384)
def readable(source: str) -> str:
    """A source expression as the user would write it; unknown forms are returned unchanged."""
    for pattern, replacement in _REPLACEMENTS:
        source = pattern.sub(replacement, source)
    return _IMPORT.sub(lambda match: match[1].replace("_dot_", "."), source)


def class_name(text: str) -> str:
    """`<class 'torch.nn.modules.linear.Linear'>` -> `Linear`; other texts are unchanged."""
    match = _CLASS.match(text.strip())
    return match["name"] if match else text.strip()


def tensor_class(text: str) -> str:
    """The class of tensors that torch's text demands: `a tensor` for a plain one, or if it names
    none."""
    name = class_name(text)
    return "a tensor" if name in ("", "Tensor") else name


def guard_name(kind: str, source: str) -> str:
    """What a guard checks: its source in the user's terms, or the name of the ambient state."""
    return readable(source) if source else _AMBIENT.get(kind, kind.lower().replace("_", " "))


_CELL = re.compile(
    r"^(?P<function>.+)\.__closure__\[(?P<index>\d+)\]\.cell_contents(?P<rest>.*)$", re.DOTALL
)


def closure_name(source: str, look_up: Callable[[str], Any]) -> str:
    """`L['fn'].__closure__[0].cell_contents` -> `k of fn`, by the function's own variable names.

    "" if the source is not a closure or its function cannot be inspected.
    """
    match = _CELL.match(source)
    if match is None:
        return ""
    try:
        variable = look_up(match["function"]).__code__.co_freevars[int(match["index"])]
    except Exception:
        return ""
    return f"{variable}{readable(match['rest'])} of {readable(match['function'])}"


def root_of(name: str) -> str:
    """`input_ids.size(0)` -> `input_ids`."""
    return re.split(r"[.\[(]", name, maxsplit=1)[0]
