"""Frames that Dynamo considered and left to Python, and why.

Dynamo considers thousands of frames of torch and the standard library. Only the user's own frames
are recorded, and frames of installed libraries that Dynamo began to trace and gave up.
"""

from __future__ import annotations

import functools
from collections import Counter
from types import CodeType
from typing import Any

from msgspec import structs

from tcw.compiler.capture.code_objects import function_location
from tcw.compiler.capture.frames import last_finished
from tcw.compiler.capture.messages import one_line
from tcw.compiler.control.hooks import RecordingHook, Uninstall, after_call, patch, undo_all
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.graphs.lines import is_users_own, outside_torch
from tcw.compiler.trace.function_names import user_name
from tcw.compiler.trace.records import FrameSkipped

NOT_SAID = "this torch does not say why"


def install(recorder: Recorder) -> Uninstall:
    from torch._dynamo import convert_frame
    from torch._dynamo.convert_frame import CatchErrorsWrapper, ConvertFrameAssert

    original = CatchErrorsWrapper.__call__
    original_assert = ConvertFrameAssert.__call__
    seen: dict[tuple[CodeType, str, str, int], FrameSkipped] = {}
    repeated: Counter[tuple[CodeType, str, str, int]] = Counter()
    refused: dict[CodeType, str] = {}
    """Why Dynamo did not begin to compile, by code object; torch 2.11 does not report it itself."""

    @functools.wraps(original_assert)
    def convert_frame_assert(self: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
        before = last_finished()
        try:
            return original_assert(self, frame, *args, **kwargs)
        except Exception as error:
            if last_finished() is before:
                refused[frame.f_code] = one_line(error)
            raise

    def looked_for_tensor(found: bool, frame: Any, *_: Any, **__: Any) -> None:
        if not found:
            refused[frame.f_code] = "no tensor-related objects found in frame"

    @functools.wraps(original)
    def catch_errors(self: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
        before = last_finished()
        result = original(self, frame, *args, **kwargs)
        if not recorder.quiet and getattr(result, "guarded_code", None) is None:
            with Safely(recorder, "a skipped frame"):
                _skipped(frame.f_code, result, before)
        return result

    def _skipped(code: CodeType, result: Any, before: object) -> None:
        tried = last_finished()
        compile_id, reason = "", refused.pop(code, "")
        if tried is not None and tried is not before and tried.code is code:
            compile_id, reason = tried.start.compile_id, tried.reason
        file = code.co_filename
        wanted = outside_torch(file) if compile_id else is_users_own(file, recorder.user_root)
        if not wanted:
            return
        reason = reason or str(getattr(result, "skip_reason", None) or NOT_SAID)
        key = (code, reason, compile_id, recorder.call)
        if key in seen:
            repeated[key] += 1
            return
        location = function_location(code)
        recorder.source(location.file)
        record = seen[key] = FrameSkipped(
            function=user_name(code.co_name),
            location=location,
            reason=reason,
            compile_id=compile_id,
            call=recorder.call,
        )
        recorder.emit(record)

    undo = [
        after_call(convert_frame, "has_tensor_in_frame", looked_for_tensor),
        patch(ConvertFrameAssert, "__call__", convert_frame_assert),
        patch(CatchErrorsWrapper, "__call__", catch_errors),
    ]

    def tell_of_repeated() -> None:
        with Safely(recorder, "repeated skips"):
            for key, count in repeated.items():
                recorder.emit(structs.replace(seen[key], count=count, at=0.0))

    return undo_all(tell_of_repeated, *undo)


HOOK = RecordingHook(
    name="skipped frames",
    offers="the user's frames that Dynamo left to Python, and why",
    needs=(
        "torch._dynamo.convert_frame:CatchErrorsWrapper.__call__",
        "torch._dynamo.convert_frame:ConvertFrameAssert.__call__",
        "torch._dynamo.convert_frame:has_tensor_in_frame",
    ),
    install=install,
    stage="capture",
    test="capture/test_skips.py",
)
