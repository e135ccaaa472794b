"""A size that is marked as dynamic, in code that needs one value of it."""

from __future__ import annotations

import ast

from tcw.compiler.capture.advice.broken import Advised, Broken
from tcw.compiler.capture.advice.user_source import by_changes, user_source
from tcw.compiler.protocol.edits.source_text import dotted
from tcw.compiler.trace.records import Advice

TYPE = "Constraint violation"
"""Our name: torch raises a `ConstraintViolationError`, which has none."""


def advise(broken: Broken) -> Advised:
    if broken.type != TYPE:
        return ()
    statement = broken.statement
    if isinstance(statement, ast.For | ast.AsyncFor):
        text = "Replace the loop with one operation on the whole tensor: it is unrolled for one "
        text += f"{broken.context}"
    else:
        text = f"Remove what needs one {broken.context} (a branch, a loop, a size written out)"
    return (Advice(text=f"{text}; a mark cannot change that"), *_maybe(broken))


def _maybe(broken: Broken) -> tuple[Advice, ...]:
    """The marks of the user's file as wishes; they are only named if the file has none."""
    text = "Or mark it as what may vary: torch then takes one value where it must, without an error"
    source = user_source(broken.file) if broken.file else None
    calls = [
        call.func
        for call in (source.all(ast.Call) if source is not None else ())
        if dotted(call.func) in ("torch._dynamo.mark_dynamic", "mark_dynamic")
    ]
    if source is not None and calls and all(isinstance(one, ast.Attribute) for one in calls):
        new = "torch._dynamo.maybe_mark_dynamic"
        if changes := source.replaced(*((one, new) for one in calls)):
            return (by_changes(text, changes),)
    return (Advice(text=f"{text} (torch._dynamo.maybe_mark_dynamic)"),)
