"""Exceptions as `Failure` records: the root cause, the user's line, what to do. No torch."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType

from tcw.compiler.control.describe import class_name, message_of
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.user_error import UserError
from tcw.compiler.graphs.lines import from_summary, is_own_file, outside_torch
from tcw.compiler.trace.records import Failure, Location, Status
from tcw.workbench.worker.blame import (
    Blame,
    cause,
    chain,
    deepest,
    machine_fault,
    source_line,
    traceback_frames,
)

TORCH_FRAMES = 3
"""Frames inside torch that a traceback keeps: the deepest ones."""
_TRACEBACK_LIMIT = 200_000

NO_TORCH = (
    f"torch is not installed in {sys.executable}: pip install 'torch-compile-workbench[torch]'"
)

Ended = tuple[Status, int | None]
"""Status and exit code for the end record."""


def ended_by(error: BaseException) -> Ended:
    """Status of a recording that this exception ended; the exit code is Python's."""
    if not isinstance(error, SystemExit):
        return "failed", None
    if error.code is None:
        return "exited", 0
    return "exited", error.code & 0xFF if isinstance(error.code, int) else 1


def failure_of(
    error: BaseException,
    doing: str,
    recorder: Recorder,
    *,
    compile_id: str = "",
    eager_fails: bool | None = None,
    blame: Blame | None = None,
    compiled_error: BaseException | None = None,
) -> Failure:
    """Describe `error`, placed at the deepest frame in the user's own files.

    `compiled_error`: what the compiled call raised, if `error` is eager's. `blame`: who caused it,
    the user unless the machine shows as the cause.
    """
    if isinstance(error, UserError):
        return Failure(
            doing=error.doing or doing,
            type=error.type or "UserError",
            message=error.message,
            location=error.location,
            source_line=source_line(error.location),
            hint=error.hint,
        )
    blame = blame or machine_fault(error) or Blame("user")
    real = cause(error)
    place = place_of(error, recorder.user_root)
    if place is not None:
        recorder.source(place.file)
    trace = _formatted(error, whole=blame.culprit == "tcw", context=compiled_error is None)
    if compiled_error is not None:
        trace = f"Compiled:\n{_formatted(compiled_error)}\nEager:\n{trace}"
    return Failure(
        doing=doing,
        type=class_name(real),
        message=_message(real),
        compile_id=compile_id,
        location=place,
        source_line=source_line(place),
        eager_fails=eager_fails,
        hint=blame.hint or hint_for(real, place.file if place else ""),
        traceback=recorder.text(trace),
        culprit=blame.culprit,
        evidence=blame.evidence,
    )


def _message(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"the program ended itself: sys.exit({message_of(error)})"
    if isinstance(error, SyntaxError):
        return error.msg or "invalid syntax"
    return message_of(error)


def place_of(error: BaseException, root: str) -> Location | None:
    """Where the user's code was: torch's stack of the traced code, else the traceback."""
    real = cause(error)
    if isinstance(real, SyntaxError) and real.filename:
        return Location(file=os.path.abspath(real.filename), line=real.lineno or 1)
    # the wrapped causes first: they are deeper
    causes = [*chain(error)][::-1]
    for exception in causes:
        stack = getattr(exception, "real_stack", None)
        if stack:
            place = deepest([from_summary(frame) for frame in stack], root)
            if place is not None:
                return place
    for base_exception in causes:
        place = deepest(traceback_frames(base_exception.__traceback__), root)
        if place is not None:
            return place
    return None


def hint_for(error: BaseException, file: str) -> str:
    """What to do about well-known failures in `file`; "" for others."""
    name, message = class_name(error), message_of(error)
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"{error.name.partition('.')[0]} is not installed in the Python that runs tcw"
    if isinstance(error, ImportError) and "no known parent package" in message:
        return _outside_its_package(Path(file))
    if isinstance(error, SystemExit) and error.code and _raised_in(error, argparse):
        return "arguments of the script come after `--`: tcw explain script.py -- --steps 3"
    if isinstance(error, RecursionError):
        return "the recursion does not end"
    if name == "Unsupported":
        return "without --fullgraph the graph breaks here and continues; explain shows each break"
    return ""


def _outside_its_package(file: Path) -> str:
    """How to record a file that uses relative imports of its package."""
    names = [file.stem]
    folder = file.parent
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    if len(names) == 1:
        return "the file runs as a script: use absolute imports; its folder is on sys.path"
    line = f"from {'.'.join(names)} import model, example_inputs"
    return f"the file is part of a package: record a file next to {names[0]}/ that has `{line}`"


def _raised_in(error: BaseException, module: ModuleType) -> bool:
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_code.co_filename == module.__file__ for frame, _ in frames)


def _formatted(error: BaseException, whole: bool = False, context: bool = True) -> str:
    """The traceback as Python prints it, without our frames, and with only torch's deepest.
    `whole` keeps all frames; without `context`, exceptions that were being handled are left out."""
    try:
        exception = traceback.TracebackException.from_exception(error, limit=-200)
        if not context:
            exception.__context__ = None
        if not whole:
            _abridge(exception)
        text = "".join(exception.format())
    except BaseException as second:  # the user's __str__ runs here
        return f"(the traceback could not be formatted: {class_name(second)})"
    return text if len(text) <= _TRACEBACK_LIMIT else text[-_TRACEBACK_LIMIT:]


def _abridge(found: traceback.TracebackException, depth: int = 0) -> None:
    """Drop frames that say nothing about the user's program, here and in the causes."""
    frames = [frame for frame in found.stack if not is_own_file(frame.filename)]
    theirs = [at for at, frame in enumerate(frames) if not outside_torch(frame.filename)]
    left_out = set(theirs[:-TORCH_FRAMES])
    found.stack[:] = [frame for at, frame in enumerate(frames) if at not in left_out]
    for inner in (found.__cause__, found.__context__):
        if inner is not None and depth < 20:
            _abridge(inner, depth + 1)


def doing_of(error: BaseException, call: int, compile_id: str) -> str:
    """`call 1, capture of 0/0`: the part of torch.compile that raised this itself."""
    if not any(
        kind.__module__.startswith(("torch._dynamo.", "torch._inductor."))
        for kind in type(error).__mro__
    ):
        return f"call {call}"
    wraps = isinstance(vars(error).get("inner_exception"), BaseException)
    return f"call {call}, {'compiling' if wraps else 'capture of'} {compile_id or 'a frame'}"
