"""Lengths of sequences, and keys of dictionaries."""

from __future__ import annotations

import ast
import re

from tcw.compiler.capture.advice.broken import Advised
from tcw.compiler.capture.advice.user_source import by_changes
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
    added = uses.grows(changed)
    if added is not None:
        return (
            _growing_tensor(changed, added),
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


def _growing_tensor(changed: ChangedValue, added: ast.Call) -> Advice:
    """One tensor in the list, which grows instead of the list. For a caller that reads it, too,
    the list has one item then."""
    subject, source = changed.subject, changed.source_text
    text = f"Keep one tensor that grows (torch.cat of it and the new part) instead of {subject}, "
    text += "which grows in the graph: a size can be a symbol, a length cannot"
    along = uses.joined_along(changed)
    appends = isinstance(added.func, ast.Attribute) and added.func.attr == "append"
    if source is None or along is None or not appends:
        return Advice(text=text)
    new = ast.unparse(added.args[0])
    form = f"{subject}[:] = [torch.cat([*{subject}, {new}], dim={along})]"
    changes = source.replaced((added, form)) if added.lineno == added.end_lineno else ()
    return by_changes(text, changes) if changes else Advice(text=text)


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
