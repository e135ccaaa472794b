"""Lengths of sequences, and keys of dictionaries."""

from __future__ import annotations

import re

from tcw.compiler.capture.advice.broken import Advised
from tcw.compiler.capture.recompile_advice import uses
from tcw.compiler.capture.recompile_advice.changed import (
    MODULE_ATTRIBUTE,
    ChangedValue,
    Settings,
)
from tcw.compiler.trace.records import Advice

_OF_MODULE = re.compile(r"^L\['self'\]\.(?!(.*\.)?__dict__$)")
"""What a module keeps, which no caller passes; not its attributes themselves."""


def length(changed: ChangedValue, settings: Settings) -> Advised:
    subject = changed.subject
    if changed.passed == "*":
        return (
            "Pass the same arguments by position, and the same by name, in every call: "
            "each number of them is compiled separately"
        )
    if "DICT" in changed.kind or changed.described.startswith(("{", "dict")):
        return keys(changed, settings)
    if MODULE_ATTRIBUTE.match(changed.source):
        return (
            f"Change {subject} outside the compiled code, or use a tensor of "
            "fixed size instead: the length is a constant of the graph"
        )
    if uses.grows(changed):
        return (
            Advice(
                text=f"Keep one tensor that grows (torch.cat of it and the new part) instead of "
                f"{subject}, which grows in the graph: a size can be a symbol, a length cannot"
            ),
            Advice(text=f"Or append to {subject} outside the compiled code"),
        )
    if uses.loops_over(changed):
        return (
            f"Replace the loop over {subject} with one operation on a stacked tensor, "
            "or pad to a fixed length: loops are unrolled"
        )
    return (
        f"Stack {subject} into one tensor, or pass as many items in every call: the length of a "
        "sequence is a constant of the graph"
    )


def keys(changed: ChangedValue, settings: Settings) -> Advised:
    what = f"Give {changed.subject} the same keys"
    if changed.passed == "**":
        what = "Pass the same keyword arguments"
    elif _OF_MODULE.match(changed.source):
        return (
            f"Fill {changed.subject} before the first compiled call, in __init__ or by a call in "
            "eager: each set of its keys is compiled separately"
        )
    return f"{what}, in the same order, in every call: each set of them is compiled separately"
