"""Graph breaks, with the user's line and columns, torch's explanation and our advice.

Dynamo often raises and catches `Unsupported` speculatively. A break is real if it reaches
`log_graph_break` or its exception leaves the frame: an error under `fullgraph`, else a skip.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from types import CodeType, FrameType
from typing import Any, Literal

from tcw.compiler.capture import symbolic_values
from tcw.compiler.capture.active_advice import without_active
from tcw.compiler.capture.advice import Broken, advise, constraints
from tcw.compiler.capture.code_objects import function_location, source_line, source_lines
from tcw.compiler.capture.frames import Frame, FrameStatus, current_frame, on_error
from tcw.compiler.capture.messages import MESSAGES, break_codes, one_line
from tcw.compiler.capture.symbolic_values import tensor_locals
from tcw.compiler.capture.translators import (
    agreed_stack,
    current_locations,
    torch_frame_below,
    translator_chain,
    with_parents,
)
from tcw.compiler.control.hooks import RecordingHook, Uninstall, after_call, patch, undo_all
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.graphs.lines import is_users_own, parse_stack_trace
from tcw.compiler.protocol.error_words import first_line
from tcw.compiler.trace.function_names import user_name
from tcw.compiler.trace.records import Advice, Crossing, FrameStart, GraphBreak, Location
from tcw.compiler.trace.source_names import SOURCE, readable
from tcw.compiler.trace.torch_logs.logged_breaks import Message, url

BreakOutcome = Literal["break", "skip-frame", "error"]

on_break: list[Callable[[Frame, GraphBreak], None]] = []
"""Called with each graph break, after it is written."""

RECOMPILE_LIMITS = ("Dynamo recompile limit exceeded", "Dynamo cache limit exceeded")
"""Types that are not breaks in the code; they are recorded as `EagerFallback`."""


def install(recorder: Recorder) -> Uninstall:
    from torch._dynamo import exc
    from torch._dynamo.convert_frame import ConvertFrameAssert
    from torch._dynamo.exc import Unsupported, UserError
    from torch._dynamo.symbolic_convert import InstructionTranslatorBase

    safely = Safely(recorder, "a break's message")
    original_assert = ConvertFrameAssert.__call__
    original_log = InstructionTranslatorBase.log_graph_break

    def formatted(
        text: str, gb_type: str, context: str, explanation: str, hints: Any, *_: Any, **__: Any
    ) -> None:
        MESSAGES.keep(text, gb_type, context, explanation, hints)

    @functools.wraps(original_log)
    def log_graph_break(
        self: Any, code_options: Any, reason: str, exc: Any, *args: Any, **kwargs: Any
    ) -> Any:
        frame = current_frame()
        if frame is not None and not recorder.quiet and not getattr(exc, "logged", False):
            # `run`: the frame is skipped; `step`: the rest of it is left to Python
            caller = sys._getframe(1).f_code.co_name
            with Safely(recorder, "a graph break"):
                outcome: BreakOutcome = "skip-frame" if caller == "run" else "break"
                values: tuple[Crossing, ...] = ()
                if caller not in ("run", "step"):
                    with Safely(recorder, "what crosses a graph break"):
                        values = crossings(self, _condition(sys._getframe(1)))
                _record(recorder, frame, self, exc, reason, outcome, values)
                exc._recorded = True
        return original_log(self, code_options, reason, exc, *args, **kwargs)

    def ended(frame: Frame, raised: BaseException, status: FrameStatus) -> None:
        error = _behind(raised)
        if hasattr(raised, "_recorded") or hasattr(error, "_recorded"):
            return
        known = isinstance(error, (Unsupported, UserError)) or _violated(error) is not None
        if not known and not _no_fake_implementation(error):
            return
        if MESSAGES.parts(error)[0].type in RECOMPILE_LIMITS:
            return
        with Safely(recorder, "a graph break"):
            reason = str(getattr(error, "msg", error))
            outcome: BreakOutcome = "error" if status == "failed" else "skip-frame"
            _record(recorder, frame, None, error, reason, outcome, ())
            error._recorded = True  # type: ignore[attr-defined]

    @functools.wraps(original_assert)
    def convert_frame_assert(self: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original_assert(self, frame, *args, **kwargs)
        except Unsupported as error:
            if not recorder.quiet and not hasattr(error, "_recorded"):
                with Safely(recorder, "a graph break"):
                    if getattr(self, "_one_graph", False):
                        refused = _refused(frame.f_code)
                        _record(recorder, refused, None, error, one_line(error), "error", ())
            raise

    undo = [
        patch(ConvertFrameAssert, "__call__", convert_frame_assert),
        after_call(exc, "format_graph_break_message", safely.guarded(formatted)),
        patch(InstructionTranslatorBase, "log_graph_break", log_graph_break),
    ]

    on_error.append(ended)

    return undo_all(*undo, lambda: on_error.remove(ended))


def _refused(code: CodeType) -> Frame:
    """A frame that Dynamo refuses before assigning a compile id, such as a generator."""
    function, location = user_name(code.co_name), function_location(code)
    start = FrameStart(compile_id="", attempt=0, function=function, location=location, call=0)
    return Frame(start, code, one_graph=True)


def _condition(caller: FrameType) -> Any | None:
    """The tensor that a jump depends on, while torch handles the break at the jump."""
    if caller.f_code.co_name != "jump_graph_break":
        return None
    return caller.f_locals.get("value")


def _behind(error: BaseException) -> BaseException:
    """The break inside `torch.cond` and similar operators, which torch wraps in another error."""
    if type(error).__name__ == "UncapturedHigherOrderOpError" and error.__context__ is not None:
        return error.__context__
    return error


def _violated(error: BaseException) -> Message | None:
    """Sizes that are marked as dynamic while the code needs one value: torch's own message has
    them, and the line that needs it."""
    if type(error).__name__ != "ConstraintViolationError":
        return None
    text = str(error)
    names = dict.fromkeys(readable(source) for source in SOURCE.findall(first_line(text)))
    return Message(constraints.TYPE, ", ".join(names), text.strip())


def _no_fake_implementation(error: BaseException) -> bool:
    """A custom operator that Dynamo cannot run: newer torch raises, older torch breaks."""
    return type(error).__name__ == "TorchRuntimeError" and "fake impl" in str(error)


def _record(
    recorder: Recorder,
    frame: Frame,
    tx: Any | None,
    error: Any,
    reason: str,
    outcome: BreakOutcome,
    values: tuple[Crossing, ...],
) -> None:
    violated = _violated(error)
    parts = [violated] if violated is not None else MESSAGES.parts(error)
    cause = parts[0]
    translators = translator_chain(tx, error)
    summaries = getattr(error, "real_stack", None)
    stack = agreed_stack(current_locations(translators), summaries)
    if violated is not None:
        stack = parse_stack_trace(violated.explanation) or stack
    location: Location = stack[-1] if stack else frame.start.location
    users = [tx for tx in translators if tx.f_code.co_filename == location.file]
    opcode = users[-1].current_instruction.opname if users else ""
    for place in stack:
        recorder.source(place.file)
    code = break_codes().get(cause.type, "")
    within = torch_frame_below(summaries, location)
    record = GraphBreak(
        compile_id=frame.start.compile_id,
        attempt=recorder.attempt,
        gb=code,
        type=cause.type,
        context=cause.context,
        explanation=cause.explanation,
        hints=cause.hints,
        location=location,
        stack=stack,
        inside=within,
        opcode=opcode,
        url=url(code),
        source_line=source_line(location),
        outcome=outcome,
        crossing=values,
        advice=_advice(recorder, parts, location, within is not None, users),
        call=recorder.call,
        reason=first_line(reason),
        then=tuple(part.type for part in parts[1:]),
    )
    recorder.emit(record)
    for listener in on_break:
        listener(frame, record)


def _advice(
    recorder: Recorder,
    parts: list[Message],
    location: Location,
    inside: bool,
    translators: list[Any],
) -> tuple[Advice, ...]:
    cause = parts[0]
    with Safely(recorder, "advice on a graph break"):
        whole = location.end_line in (None, location.line)
        advice = advise(
            Broken(
                **asdict(cause),
                lines=source_lines(location),
                column=location.column,
                end_column=location.end_column if whole else None,
                then=tuple(part.type for part in parts[1:]),
                tensors=tensor_locals(translators[-1]) if translators else (),
                library=not is_users_own(location.file, recorder.user_root),
                inside=inside,
                file=location.file,
                line=location.line,
            )
        )
        return without_active(advice)
    return ()


def crossings(tx: Any, condition: Any | None) -> tuple[Crossing, ...]:
    """The values that cross a break, read from its translator while the instruction is current.

    These are the stack entries below the instruction's own operands, then the locals that the code
    after it reads (torch's own liveness analysis, as in `create_resume`). `condition` is the tensor
    that a jump depends on: it is copied to the host, which waits for it.
    """
    from torch._dynamo.bytecode_analysis import livevars_analysis

    found: list[Crossing] = []
    for frame in with_parents(tx):
        # torch may break inside an inlined function, so its callers resume as well
        targets = [frame.next_instruction]
        if frame is tx and condition is not None and tx.current_instruction.target is not None:
            targets.append(tx.current_instruction.target)
        live: set[str] = set()
        for target in targets:
            live |= livevars_analysis(frame.instructions, target)
        found += _values(frame, live)
    if condition is not None:
        name = symbolic_values.node(condition) or "condition"
        found.append(symbolic_values.crossing(name, condition, "condition"))
    return tuple(found)


def _values(tx: Any, live: set[str]) -> Iterator[Crossing]:
    below = [variable for variable in tx.stack if symbolic_values.kind(variable) != "Null"]
    for position, variable in enumerate(below):
        name = symbolic_values.node(variable) or f"stack[{position}]"
        yield symbolic_values.crossing(name, variable)
    cells = {*tx.cellvars(), *tx.freevars()}
    for name, variable in tx.symbolic_locals.items():
        if name in live and name not in cells and symbolic_values.kind(variable) != "Null":
            yield symbolic_values.crossing(name, variable)


HOOK = RecordingHook(
    name="graph breaks",
    offers="each graph break with line, columns, code, reason, what crosses it and how to fix it",
    needs=(
        "torch._dynamo.exc:format_graph_break_message(gb_type, context, explanation, hints)",
        "torch._dynamo.symbolic_convert:InstructionTranslatorBase.log_graph_break(reason, exc)",
        "torch._dynamo.convert_frame:ConvertFrameAssert.__call__",
        "torch._dynamo.exc:Unsupported",
        "torch._dynamo.exc:UserError",
        "torch._dynamo.bytecode_analysis:livevars_analysis",
    ),
    install=install,
    stage="capture",
    test="capture/test_graph_breaks.py",
)
