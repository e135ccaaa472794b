"""The captured graph: Dynamo's output as passed to the backend."""

from __future__ import annotations

from typing import Any

from tcw.compiler.capture.frames import current_frame
from tcw.compiler.control.hooks import RecordingHook, Uninstall, before_call
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.graphs.nodes import describe_graph
from tcw.compiler.graphs.random_operations import misread_numbers


def install(recorder: Recorder) -> Uninstall:
    from torch._dynamo.output_graph import OutputGraph

    def captured(_output: Any, gm: Any, *_: Any, **__: Any) -> None:
        frame = current_frame()
        # torch passes a specialised graph again, once per specialisation
        if frame is not None and not recorder.quiet and recorder.attempt not in frame.graphs:
            frame.graphs.add(recorder.attempt)
            with Safely(recorder, "a captured graph"):
                recorder.misread_numbers += misread_numbers(gm)
                recorder.emit(
                    describe_graph(
                        gm.graph,
                        id=frame.start.compile_id,
                        kind="captured",
                        compile_id=frame.start.compile_id,
                        recorder=recorder,
                    )
                )

    return before_call(OutputGraph, "call_user_compiler", captured)


HOOK = RecordingHook(
    name="captured graphs",
    offers="each graph that Dynamo captured, node by node, with the user's lines",
    needs=("torch._dynamo.output_graph:OutputGraph.call_user_compiler",),
    install=install,
    stage="capture",
    test="capture/test_frames.py",
)
