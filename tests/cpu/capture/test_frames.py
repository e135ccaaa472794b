"""Frames, attempts and their figures, compared with torch's own compilation metrics."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch

from tcw.compiler.capture import HOOKS
from tcw.compiler.capture.frames import current_frame
from tcw.compiler.trace.records import FrameEnd, FrameStart, Graph, Step
from tcw.viewers.summary.calls import calls_of
from tests.cpu.capture import breaking
from tests.cpu.capture.compiled import Compiled, compiled
from tests.cpu.capture.decorated import passing
from tests.cpu.recorded import record

pytestmark = pytest.mark.filterwarnings("ignore")

X = torch.ones(2, 2)


def ends(result: Compiled) -> list[tuple[str, str, int]]:
    return [(e.compile_id, e.status, e.attempts) for e in result.recording.all(FrameEnd)]


@pytest.mark.parametrize(
    "kind",
    [breaking.branch_clamp, breaking.inlines, breaking.two_breaks, breaking.prints_in_loop],
    ids=lambda kind: kind.__name__,
)
def test_operations_and_guards_are_torchs_own(kind: Any) -> None:
    result = compiled(kind, (X,))
    ours = [(e.ops, e.guards) for e in result.recording.all(FrameEnd)]
    theirs = [(m["graph_op_count"] or 0, m["guard_count"] or 0) for m in result.metrics()]
    assert ours == theirs
    for end in result.recording.all(FrameEnd):
        graph = result.recording.graphs.get(end.compile_id)
        assert end.ops == (graph.ops if graph is not None else 0)


def test_a_break_starts_the_frame_again() -> None:
    result = compiled(breaking.prints, (X,))
    starts = [(s.compile_id, s.attempt, s.resumes_at) for s in result.recording.all(FrameStart)]
    line = breaking.prints.__code__.co_firstlineno + 2
    assert starts == [("0/0", 0, None), ("0/0", 1, None), ("1/0", 0, line)]
    assert ends(result) == [("0/0", "compiled", 2), ("1/0", "compiled", 1)]
    told = {metadata["frame_compile_id"] for metadata, _ in result.events_with("dynamo_start")}
    assert told == {0}
    assert max(metadata.get("attempt", 0) for metadata, _ in result.events) == 1


def test_a_resume_function_is_placed_like_its_function() -> None:
    result = compiled(breaking.two_breaks, (X,))
    starts = result.recording.all(FrameStart)
    code = breaking.two_breaks.__code__
    assert {s.function for s in starts} == {"two_breaks"}
    assert {s.location.line for s in starts} == {code.co_firstlineno}
    assert {s.location.end_line for s in starts} == {code.co_firstlineno + 5}


class Wrapped(torch.nn.Module):
    """As models of transformers are."""

    @passing
    def forward(self, x):
        return x + 1


def test_the_wrapper_of_a_forward_is_named_by_the_forward() -> None:
    result = compiled(Wrapped(), (X,))
    (start,) = result.recording.all(FrameStart)
    assert (start.function, start.called) == ("wrapper", "forward")
    assert start.wrapped is not None
    assert start.wrapped.line == Wrapped.forward.__wrapped__.__code__.co_firstlineno
    (piece,) = calls_of(result.recording)[0].pieces
    assert piece.place is not None
    assert (piece.function, piece.place.line) == ("forward", start.wrapped.line)
    (plain,) = compiled(lambda x: x + 1, (X,)).recording.all(FrameStart)
    assert plain.wrapped is None


def test_the_frame_that_dynamo_puts_around_a_module_of_torch_is_named_by_its_forward() -> None:
    (start,) = compiled(torch.nn.ReLU(), (X,)).recording.all(FrameStart)
    assert (start.function, start.called) == ("inner", "forward")
    assert start.wrapped is not None
    assert start.wrapped.line == torch.nn.ReLU.forward.__code__.co_firstlineno


def star_decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


class StarWrapped(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(2, 2)

    @star_decorated
    def forward(self, x):
        return self.inner(x) + 1


def test_a_wrapper_that_takes_self_among_its_arguments() -> None:
    """The frame is its forward, and paths of modules start below the model."""
    recording = compiled(StarWrapped(), (X,)).recording
    (start,) = recording.all(FrameStart)
    assert start.called == "forward"
    graph = next(one for one in recording.all(Graph) if one.kind == "captured")
    modules = {node.module for node in graph.nodes if node.op == "call_function"}
    assert modules == {"inner", ""}


def test_a_frame_without_operations_is_empty() -> None:
    result = compiled(lambda x: 3, (X,))
    assert ends(result) == [("0/0", "empty", 1)]
    assert result.recording.all(FrameEnd)[0].reason.startswith("No ops traced")


def test_recompiles_are_compiles_of_the_same_frame() -> None:
    result = compiled(lambda x: x + 1, (X,), (torch.ones(3, 2),), (torch.ones(5, 2),))
    starts = [(s.compile_id, s.call) for s in result.recording.all(FrameStart)]
    assert starts == [("0/0", 1), ("0/1", 2)]


def test_a_backend_that_fails_fails_the_frame() -> None:
    def backend(module: Any, inputs: Any) -> Any:
        raise ValueError("no such kernel")

    result = compiled(lambda x: x + 1, (X,), backend=backend)
    (end,) = result.recording.all(FrameEnd)
    assert end.status == "failed"
    assert end.reason == "backend='backend' raised: ValueError: no such kernel"
    assert result.recording.graphs["0/0"].ops == 1


def test_a_compile_inside_a_compile_keeps_the_outer_one() -> None:
    inner = torch.compile(lambda x: x * 2, backend="eager")

    def backend(module: Any, inputs: Any) -> Any:
        outer = current_frame()
        inner(torch.ones(3))
        assert current_frame() is outer
        return module.forward

    result = compiled(lambda x: x + 1, (X,), backend=backend, record="steps")
    assert result.error is None
    assert current_frame() is None
    assert ends(result) == [("1/0", "compiled", 1), ("0/0", "compiled", 1)]
    steps = [step.compile_id for step in result.recording.all(Step) if step.step == 0]
    assert steps == ["0/0", "1/0"]


def test_nothing_is_recorded_while_quiet_or_after() -> None:
    before = vars(torch._dynamo.convert_frame)["_compile"]
    with record(HOOKS, record="steps") as recorded:
        recorded.recorder.quiet = True
        torch.compile(breaking.prints, backend="eager")(X)
    assert vars(torch._dynamo.convert_frame)["_compile"] is before
    torch.compile(breaking.branch_clamp, backend="eager")(X)
    assert recorded.records == []


def test_the_calls_compiles_are_noted() -> None:
    with record(HOOKS) as recorded:
        torch.compile(breaking.prints, backend="eager")(X)
    assert recorded.recorder.compiled_in_call == ["0/0", "1/0"]
    assert recorded.recorder.compile_id == ""


def test_captured_graphs_are_those_of_the_structured_trace() -> None:
    result = compiled(breaking.inlines, (X,))
    told = [
        f"{metadata['frame_id']}/{metadata['frame_compile_id']}"
        for metadata, _ in result.events_with("dynamo_output_graph")
    ]
    graphs = result.recording.all(Graph)
    assert [graph.id for graph in graphs] == told
    for graph, (_, printed) in zip(graphs, result.events_with("dynamo_output_graph"), strict=True):
        for node in graph.nodes:
            if node.op in ("call_function", "call_method"):
                assert f" {node.name}: " in printed
                assert node.location is not None
                assert node.location.file == breaking.__file__
                assert node.value is not None
                assert node.value.bytes == 16
