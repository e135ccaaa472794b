"""Who caused a failure: the machine, the user, torch or tcw. No torch.

A full disk or a limit of the machine surfaces deep inside a compile, wrapped in torch's exceptions
or quoted in a compiler's output. So the whole chain of causes is searched, and the line that shows
it is kept whole.
"""

from __future__ import annotations

import dis
import errno
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Literal

from tcw.compiler.control.describe import class_name, message_of
from tcw.compiler.graphs.lines import is_own_file, is_users_own, outside_torch
from tcw.compiler.trace.records import Location

_TORCH = re.compile(r"[/\\](?:site|dist)-packages[/\\](?:torch|triton)[/\\]")
"""The front end never imports torch, so it cannot ask torch for its folder."""


def not_ours(file: str) -> bool:
    """Whether `file` is neither torch's, the standard library's nor tcw's."""
    return outside_torch(file) and not is_own_file(file) and not _TORCH.search(file)


def deepest(frames: Sequence[Location], root: str) -> Location | None:
    """The deepest of these frames (outermost first) in the user's own files, else in a library."""
    for wanted in (lambda file: is_users_own(file, root), not_ours):
        for frame in reversed(frames):
            if wanted(frame.file):
                return frame
    return None


def traceback_frames(trace: TracebackType | None) -> list[Location]:
    """The frames of a traceback, outermost first, with column ranges."""
    frames = []
    while trace is not None:
        code, instruction = trace.tb_frame.f_code, trace.tb_lasti // 2
        line, end_line, column, end_column = next(
            itertools.islice(code.co_positions(), instruction, None), (None,) * 4
        )
        frames.append(
            Location(
                file=code.co_filename,
                line=line or trace.tb_lineno or code.co_firstlineno,
                end_line=end_line,
                column=column,
                end_column=end_column,
                function=code.co_name,
            )
        )
        trace = trace.tb_next
    return frames


def source_line(location: Location | None) -> str:
    """The source line of a location without its end; "" if it cannot be read."""
    if location is None:
        return ""
    try:
        with open(location.file, encoding="utf-8", errors="replace") as stream:
            for number, line in enumerate(stream, 1):
                if number == location.line:
                    return line.rstrip("\r\n")[:2000]
    except (OSError, ValueError):
        pass
    return ""


_DUMPED = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)$')
_ESCAPED = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")


def dumped_frames(dump: str) -> list[Location]:
    """The current thread's frames in faulthandler's text, outermost first. A dump holds several
    threads; `Current thread` is the one that crashed or was asked."""
    blocks = re.split(r"^(?=Current thread |Thread 0x)", dump, flags=re.MULTILINE)
    chosen = [block for block in blocks if block.startswith("Current thread")] or blocks
    frames = []
    for line in chosen[-1].splitlines():
        match = _DUMPED.match(line)
        if match:
            file, function = (_unescaped(match[name]) for name in ("file", "function"))
            frames.append(Location(file=file, line=int(match["line"]), function=function))
    return frames[::-1]


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1] or match[2] or match[3], 16)), text)


Culprit = Literal["user", "torch", "tcw", "machine"]

DISK = "free some space there, or set TMPDIR to a folder on another disk"
MEMORY = "out of memory: use smaller inputs or a smaller model, or raise the limit (ulimit -v)"
FILES = "too many open files: raise the limit (ulimit -n)"
PROCESSES = "no more processes or threads: raise the limit (ulimit -u), or end others"
COMPILER = "install g++ or set CXX to a compiler; --until codegen needs none"
READ_ONLY = "set TMPDIR to a writable folder"

_NUMBERS = {
    errno.ENOSPC: DISK, errno.EDQUOT: DISK, errno.EFBIG: DISK,
    errno.ENOMEM: MEMORY,
    errno.EMFILE: FILES, errno.ENFILE: FILES,
    errno.EAGAIN: PROCESSES,
    errno.EROFS: READ_ONLY,
}  # fmt: skip
_WORDS = (
    (re.compile(r"No space left on device|[Dd]isk quota exceeded|File size limit exceeded"), DISK),
    (re.compile(r"[Cc]annot create temporary file in"), READ_ONLY),
    (re.compile(r"Read-only file system"), READ_ONLY),
    (
        re.compile(
            r"std::bad_alloc|can't allocate memory|[Cc]annot allocate memory|[Oo]ut of memory"
            r"|virtual memory exhausted|failed to map segment"
        ),
        MEMORY,
    ),
    (re.compile(r"Too many open files"), FILES),
    (
        re.compile(
            r"can't start new thread|Thread creation failed|Resource temporarily unavailable"
        ),
        PROCESSES,
    ),
)
"""Messages of libraries and compilers in the C locale."""

_MOST_CAUSES = 20


@dataclass(frozen=True)
class Blame:
    """Who caused it."""

    culprit: Culprit
    evidence: str = ""
    """The line that shows it, whole; "" if the message itself does."""
    hint: str = ""


def cause(error: BaseException) -> BaseException:
    """The exception inside `BackendCompilerFailed`, `InductorError` and the like."""
    for _ in range(_MOST_CAUSES):
        inner = vars(error).get("inner_exception")
        if not isinstance(inner, BaseException):
            wraps = class_name(error) in ("InternalTorchDynamoError", "LoweringException")
            inner = error.__cause__ if wraps else None
        if inner is None:
            return error
        error = inner
    return error


def chain(error: BaseException, context: bool = False) -> Iterator[BaseException]:
    """The exception and those that it wraps or was raised from, outermost first. `context`: also
    those that were being handled meanwhile."""
    seen: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting and len(seen) < _MOST_CAUSES:
        exception = waiting.pop(0)
        if exception is None or any(exception is other for other in seen):
            continue
        seen.append(exception)
        inner = vars(exception).get("inner_exception")
        waiting.append(inner if isinstance(inner, BaseException) else exception.__cause__)
        if context and not exception.__suppress_context__:
            waiting.append(exception.__context__)
    yield from seen


def machine_fault(error: BaseException) -> Blame | None:
    """The machine as the cause of `error`; None if nothing in its chain of causes shows that."""
    for exception in chain(error, context=True):
        if class_name(exception) == "InvalidCxxCompiler":
            return Blame("machine", hint=COMPILER)
        hint = ""
        if isinstance(exception, OSError) and exception.errno in _NUMBERS:
            hint = _NUMBERS[exception.errno]
        elif isinstance(exception, MemoryError):
            hint = MEMORY
        if hint:
            return Blame("machine", _line(exception), hint)
        if not _users_words(exception):
            said = said_by_machine(message_of(exception, _WHOLE))
            if said is not None:
                return said
    return None


def said_by_machine(text: str) -> Blame | None:
    """The machine as the cause, from a program's output; None if no line shows that."""
    for row in text.splitlines():
        for words, hint in _WORDS:
            if words.search(row):
                return Blame("machine", row.strip(), hint)
    return None


def _users_words(error: BaseException) -> bool:
    """Whether the message was chosen by a `raise` outside torch and tcw, or quotes source."""
    if isinstance(error, SyntaxError):
        return True
    trace = error.__traceback__
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    raised = code.co_code[trace.tb_lasti] == dis.opmap["RAISE_VARARGS"]
    return raised and not_ours(code.co_filename)


_WHOLE = 1_000_000
"""Characters of a message that are searched: a compiler's output follows its command line."""


def _line(error: BaseException) -> str:
    return (message_of(error).splitlines() or [""])[0] or class_name(error)


def of_call(error: BaseException) -> Blame:
    """Who caused a compiled call to raise where eager did not."""
    return machine_fault(error) or Blame("torch")


def of_recording(error: BaseException) -> Blame:
    """Who caused an unexpected exception: the machine, torch, else tcw. torch causes those that
    importing it raises: warnings that the environment turns into errors, or its files read in the
    locale's encoding."""
    fault = machine_fault(error)
    if fault is not None:
        return fault
    if not _raised_by_importing_torch(error):
        return Blame("tcw")
    if isinstance(error, Warning):
        return Blame(
            "torch", hint="PYTHONWARNINGS turns this torch warning into an error: take `error` off"
        )
    if isinstance(error, UnicodeError):
        return Blame(
            "torch",
            hint="torch reads its own files in the encoding of the locale: set PYTHONUTF8=1, or a "
            "UTF-8 locale",
        )
    return Blame("torch")


def _raised_by_importing_torch(error: BaseException) -> bool:
    """Whether the frames below our last one are an import that runs torch's code."""
    files = [frame.file for frame in traceback_frames(error.__traceback__)]
    below = files[max((at for at, file in enumerate(files) if is_own_file(file)), default=-1) + 1 :]
    imports = any("importlib" in file for file in below)
    return imports and any(not outside_torch(file) for file in below)
