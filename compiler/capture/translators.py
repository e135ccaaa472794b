"""Where Dynamo is in the user's code: its chain of translators, read from an exception.

A translator (`tx`) stands for one Python frame that Dynamo interprets: the compiled frame, or a
function inlined into it. Its current instruction has the column range.
"""

from __future__ import annotations

from collections.abc import Iterator
from traceback import FrameSummary
from types import TracebackType
from typing import Any

from msgspec import structs

from tcw.compiler.capture.code_objects import instruction_location
from tcw.compiler.graphs.lines import from_summary, outside_torch
from tcw.compiler.trace.function_names import user_name
from tcw.compiler.trace.records import Location


def with_parents(tx: Any) -> Iterator[Any]:
    """A translator, its parent, and so on up to the compiled frame."""
    while tx is not None:
        yield tx
        tx = getattr(tx, "parent", None)


def stepping_translators(traceback: TracebackType | None) -> list[Any]:
    """The translators that were executing an instruction when an exception was raised."""
    found: list[Any] = []
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code.co_name == "step":
            tx = frame.f_locals.get("self")
            if hasattr(tx, "current_instruction") and tx not in found:
                found.append(tx)
        traceback = traceback.tb_next
    return found


def translator_chain(tx: Any | None, error: BaseException) -> list[Any]:
    """All translators from the compiled frame down to the break."""
    inner = stepping_translators(error.__traceback__)
    if tx is None and inner:
        tx = inner[0]
    found = list(with_parents(tx))[::-1] if tx is not None else []
    return found + [item for item in inner if item not in found]


def positions(tx: Any) -> Any:
    """Positions of the current instruction; for a jump, those of its condition.

    CPython gives some jumps the range of the whole `if` statement. The preceding instruction, which
    computed the condition, has the range of the condition.
    """
    instruction = tx.current_instruction
    found = instruction.positions
    if "JUMP" not in instruction.opname or found is None or found.end_lineno == found.lineno:
        return found
    index = tx.indexof.get(instruction, 0)
    before = tx.instructions[index - 1].positions if index > 0 else None
    return before if before is not None and before.lineno == found.lineno else found


def current_locations(translators: list[Any]) -> list[Location]:
    """One location per translator, with the columns of its current instruction."""
    return [instruction_location(tx.f_code, positions(tx), tx.lineno) for tx in translators]


def user_frames(locations: list[Location]) -> tuple[Location, ...]:
    """The locations outside torch and the standard library, outermost first; all if none are."""
    return tuple(item for item in locations if outside_torch(item.file)) or tuple(locations)


def agreed_stack(
    locations: list[Location], stack: list[FrameSummary] | None
) -> tuple[Location, ...]:
    """The user's frames. For files and lines, torch's own stack has the last word.

    An error that torch raised while handling another keeps the first error's stack, which may be
    deeper than the remaining translators.
    """
    ours = user_frames(locations)
    summaries = [_without_prefix(from_summary(frame)) for frame in stack or ()]
    theirs = user_frames(summaries)
    if not theirs or [(o.file, o.line) for o in ours] == [(t.file, t.line) for t in theirs]:
        return ours
    known = {(item.file, item.line): item for item in ours}
    return tuple(known.get((item.file, item.line), item) for item in theirs)


def torch_frame_below(stack: list[FrameSummary] | None, location: Location) -> Location | None:
    """torch's own deepest frame if it lies below the user's, in torch or the standard library."""
    if not stack:
        return None
    deepest = _without_prefix(from_summary(stack[-1]))
    same = (deepest.file, deepest.line) == (location.file, location.line)
    return None if same or outside_torch(deepest.file) else deepest


def _without_prefix(location: Location) -> Location:
    return structs.replace(location, function=user_name(location.function))
