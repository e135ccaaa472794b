"""Which advice goes with which break: the first family that has any gives it.

A text starts with what to do, or with `If` if it is conditional. It has a capital letter and no
full stop. Code is what to paste.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from tcw.compiler.capture.advice import (
    branches,
    calls,
    constraints,
    hooks,
    numbers,
    numpy_calls,
    operators,
    output,
    sizes,
)
from tcw.compiler.capture.advice.broken import Advised, Broken, as_advice
from tcw.compiler.trace.records import Advice

FAMILIES: tuple[Callable[[Broken], Advised], ...] = (
    constraints.advise,
    branches.advise,
    operators.advise,
    numpy_calls.advise,
    numbers.advise,
    sizes.advise,
    output.advise,
    hooks.advise,
    calls.advise,
)

BOILERPLATE = (
    "It may be possible to write Dynamo tracing rules",
    "This graph break may be difficult to debug",
    "This graph break is fundamental",
    "This is likely to be a Dynamo bug",
    "This graph break may have been caused by an earlier graph break",
    "Please report an issue to PyTorch",
    "Please file an issue",
    "File an issue to PyTorch",
)
"""Prefixes of torch's hints that suggest nothing to change in the user's code."""


def advise(broken: Broken) -> tuple[Advice, ...]:
    """Our advice if there is any, else torch's own hints, useful ones first."""
    for family in FAMILIES:
        if advices := as_advice(family(broken)):
            if broken.library:  # nobody edits an installed package: its settings remain
                advices = tuple(replace(one, place="", changes=()) for one in advices)
            return (*advices, *_loop(broken))
    hints = sorted(broken.hints, key=lambda hint: hint.startswith(BOILERPLATE))
    return (*(Advice(text=hint, by="torch") for hint in hints), *_loop(broken))


def _loop(broken: Broken) -> tuple[Advice, ...]:
    if "graph break in loop" not in broken.then:
        return ()
    return as_advice(
        "Move the rest of the loop body into a separate function, which is compiled: a"
        " break inside a loop leaves the whole function to Python"
    )
