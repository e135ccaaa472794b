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
    hints,
    hoist,
    hooks,
    in_place,
    loops,
    numbers,
    numpy_calls,
    operators,
    output,
    rewrites,
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
REWRITES: tuple[Callable[[Broken], Advised], ...] = (in_place.advise, rewrites.advise, hoist.advise)
"""Other ways to write the statement, from its source: they come before what a family says."""


def advise(broken: Broken) -> tuple[Advice, ...]:
    """Our advice if there is any, else torch's own hints, useful ones first."""
    rewritten = tuple(one for family in REWRITES for one in as_advice(family(broken)))
    if broken.library:  # nobody edits an installed package: its settings remain
        rewritten = ()
    for family in FAMILIES:
        if advices := as_advice(family(broken)):
            if broken.library:
                advices = tuple(replace(one, place="", changes=()) for one in advices)
            return (*rewritten, *advices, *loops.in_loop(broken))
    return (*rewritten, *hints.hints(broken), *loops.in_loop(broken))
