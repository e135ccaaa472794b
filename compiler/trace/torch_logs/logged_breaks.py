"""Graph breaks: torch's text (`dynamo_graph_break_reason`) taken apart.

The text has torch's message (`format_graph_break_message` in torch/_dynamo/exc.py; torch 2.5 and
2.6 have one line instead), the user's stack and torch's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tcw.compiler.trace.records import FrameStart, GraphBreak, Location
from tcw.compiler.trace.torch_logs.logged_places import LogSources, user_frames

JOINED = "\n\n*** While handling this graph break, another graph break occurred: ***\n\n"
_PLACE = re.compile(r"^Graph break in user code at (?P<file>.+):(?P<line>\d{1,9})$", re.MULTILINE)
_REASON = re.compile(r"^(?:Graph Break )?Reason: ?", re.MULTILINE)
_STACK = re.compile(r"^User code traceback:$", re.MULTILINE)
_TORCHS = re.compile(r"^Traceback \(most recent call last\):$", re.MULTILINE)
_IN_LOOP = "graph break in loop"
_SKIPPED = "The graph break occurred in the following user code:\n"
_GAVE_UP = (
    "Failed to handle graph break gracefully. Skipping the function and falling back to eager. "
    "Graph break encountered:\n\n"
)
"""Before the reason of a break after which torch 2.9 and later give up the frame."""
_RAISED = re.compile(r"^(?:[\w.]{1,200}\.)?(?:Unsupported|UserError): ?", re.MULTILINE)
_FROM_USER = re.compile(r"^ *from user code:$", re.MULTILINE)
"""Before the user's stack in an error that ended a compile."""
_CODE = re.compile(r"/gb/gb(?P<code>\d{1,6})\.html")
_ATTRIBUTION = "\n\nStack variable source attribution:\n"
"""What torch appends to the context of a message, for its log only."""
_DOCUMENTED = re.compile(r"\n*^ *For more details about this graph break.*$", re.MULTILINE)
_FIELD = re.compile(r"^  (?P<name>Explanation|Hint|Developer debug context): ?", re.MULTILINE)


@dataclass(frozen=True)
class Message:
    """One graph break in torch's words."""

    type: str
    context: str = ""
    explanation: str = ""
    hints: tuple[str, ...] = ()
    gb: str = ""


def graph_break(
    text: str,
    files: LogSources,
    compile_id: str,
    attempt: int,
    frame: FrameStart | None,
    callers: int,
) -> GraphBreak:
    """The record of one break. `frame`: the compile it was in, as far as the log has it; `callers`:
    how many of the user's frames called it."""
    gave_up = _GAVE_UP in text
    text = text.replace(_GAVE_UP, "", 1)
    skipped = _SKIPPED in text
    torchs = _TORCHS.search(text)
    before = text[: torchs.start()] if torchs else text
    reason = _reason(before, text, skipped)
    stack = _stack(before if before.strip() else text, files, skipped, frame, callers)
    messages = [_message(part) for part in reason.split(JOINED)]
    # a break in a loop gives up the frame, which torch says in no other way
    skipped = skipped or gave_up or any(message.type == _IN_LOOP for message in messages)
    cause = messages[0]
    place = _PLACE.search(text)
    location = stack[-1] if stack else _named(place) or _unknown(frame)
    return GraphBreak(
        compile_id=compile_id,
        attempt=attempt,
        gb=cause.gb,
        type=cause.type,
        context=cause.context,
        explanation=cause.explanation,
        hints=cause.hints,
        location=location,
        stack=stack,
        url=url(cause.gb),
        source_line=files.code(location),
        outcome="skip-frame" if skipped else "break",
        reason=next((row.strip() for row in reason.split("\n") if row.strip()), ""),
        then=tuple(message.type for message in messages[1:]),
    )


def unexplained_break(
    resumed: FrameStart, starts: Mapping[str, FrameStart], files: LogSources
) -> Iterator[GraphBreak]:
    """The break that the resume function `resumed` continues, in a log without reasons of breaks.
    `starts`: the compiles so far."""
    location = Location(
        file=resumed.location.file, line=resumed.resumes_at or 0, function=resumed.function
    )
    own = (location.file, resumed.function)
    before = [
        name
        for name, start in starts.items()
        if (start.location.file, start.function) == own and name != resumed.compile_id
    ]
    if before and resumed.compile_id.endswith("/0"):
        yield GraphBreak(
            compile_id=before[-1],
            attempt=0,
            gb="",
            type="graph break",
            context="",
            hints=(),
            explanation=_UNEXPLAINED,
            location=location,
            stack=(location,),
            source_line=files.code(location),
            outcome="break",
        )


_UNEXPLAINED = (
    "The reason is not in this log: torch before 2.6 writes none. That the graph ends here is "
    "known from the function that Dynamo compiled for the code after this line."
)


def _reason(before: str, text: str, skipped: bool) -> str:
    raised = list(_RAISED.finditer(text))
    if skipped or (raised and not before.strip()):
        reason = text[raised[-1].end() :] if raised else ""
        user = _FROM_USER.search(reason)
        return reason[: user.start()] if user else reason
    start, end = _REASON.search(before), _STACK.search(before)
    return before[start.end() if start else 0 : end.start() if end else len(before)].strip("\n")


def _message(text: str) -> Message:
    """torch's message, or the one line that torch before 2.7 has."""
    code = _CODE.search(text)
    text = _DOCUMENTED.sub("", text).partition(_ATTRIBUTION)[0]
    fields = list(_FIELD.finditer(text))
    if not fields:
        plain = text.strip()
        first = plain.partition("\n")[0].removeprefix("Unsupported: ")
        return Message(first, explanation=plain, gb=f"GB{code['code']}" if code else "")
    ends = [field.start() for field in fields[1:]] + [len(text)]
    values: list[tuple[str, str]] = [
        (field["name"], _dedented(text[field.end() : end]))
        for field, end in zip(fields, ends, strict=True)
    ]
    named = dict(reversed(values))
    head = [row.strip() for row in text[: fields[0].start()].split("\n") if row.strip()]
    return Message(
        type=head[-1] if head else "",
        context=named.get("Developer debug context", ""),
        explanation=named.get("Explanation", ""),
        hints=tuple(value for name, value in values if name == "Hint"),
        gb=f"GB{code['code']}" if code else "",
    )


def _dedented(text: str) -> str:
    rows = text.rstrip("\n").split("\n")
    return "\n".join([rows[0], *(row.removeprefix("    ") for row in rows[1:])])


def _stack(
    text: str, files: LogSources, skipped: bool, frame: FrameStart | None, callers: int
) -> tuple[Location, ...]:
    """The user's frames from the compiled one inwards; its callers are not part of the break."""
    if skipped:
        text = text[text.index(_SKIPPED) + len(_SKIPPED) :] if _SKIPPED in text else text
    elif match := _STACK.search(text) or _FROM_USER.search(text):
        text = text[match.end() :]
    else:
        return ()
    stack = user_frames(files.traceback(text))
    if frame is not None:
        own = (frame.location.file, frame.function)
        places = [
            at for at, location in enumerate(stack) if (location.file, location.function) == own
        ]
        # of a resume function the callers also have the function that it resumes
        outside = callers - (frame.resumes_at is not None)
        start = next((at for at in places if at >= outside), max(places, default=0))
        stack = stack[start:]
    return stack


def _named(place: re.Match[str] | None) -> Location | None:
    return Location(file=place["file"], line=int(place["line"])) if place else None


def _unknown(frame: FrameStart | None) -> Location:
    return frame.location if frame is not None else Location(file="", line=0)


def url(code: str) -> str:
    """torch's page about a code; "" if `code` is empty."""
    number = code.removeprefix("GB")
    if not number:
        return ""
    return f"https://meta-pytorch.github.io/compile-graph-break-site/gb/gb{number}.html"
