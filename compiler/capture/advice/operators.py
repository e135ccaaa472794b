"""Operators that torch cannot run without data: no fake implementation."""

from __future__ import annotations

import re

from tcw.compiler.capture.advice.broken import Advised, Broken
from tcw.compiler.trace.records import Advice

_DEFINED = re.compile(r"CustomOpDef\((?P<name>\w+::\w+)\)")
_NAMED = re.compile(r"(?P<space>\w+)(?:::|\.)(?P<name>\w+)(?:\.\w+)?")

WITHOUT_FAKE = (
    "Operator does not support running with fake tensors",
    "Dynamic shape operator (no meta kernel)",
    "NotImplementedError/UnsupportedFakeTensorException when running FX node",
)


def advise(broken: Broken) -> Advised:
    missing = "no fake impl" in broken.explanation or broken.type in WITHOUT_FAKE
    if not missing:
        return ()
    name = operator(broken)
    if not name or name.startswith("aten::"):
        return ()
    return Advice(
        text=f"Register the shape and dtype of the result of {name}: it has no fake implementation",
        code=f'@torch.library.register_fake("{name}")\n'
        "def _(*arguments):\n"
        "    return torch.empty(...)  # of the result's shape, dtype and device",
    )


def operator(broken: Broken) -> str:
    """`mine::op`; "" if torch does not name it."""
    defined = _DEFINED.search(broken.explanation)
    if defined:
        return defined["name"]
    text = broken.context.removeprefix("unsupported operator: ").strip()
    named = _NAMED.match(text)
    return f"{named['space']}::{named['name']}" if named else ""
