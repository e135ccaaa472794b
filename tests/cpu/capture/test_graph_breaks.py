"""Graph breaks of all kinds: as many, and in the same places, as in torch's own structured
trace."""

from __future__ import annotations

import functools
import uuid
from typing import Any

import pytest
import torch
from torch._dynamo.resume_execution import ContinueExecutionCache

from tcw.compiler.capture.advice.hints import BOILERPLATE
from tcw.compiler.trace.records import FrameEnd, GraphBreak
from tcw.viewers.recording import Recording
from tcw.viewers.summary import summarise
from tcw.viewers.summary.breaks import BreakSite
from tests.cpu.capture import breaking
from tests.cpu.capture.compiled import Compiled, compiled

pytestmark = pytest.mark.filterwarnings("ignore")


@functools.cache
def run(kind: Any) -> Compiled:
    return compiled(kind, (torch.ones(2, 2),))


kinds = pytest.mark.parametrize("kind", breaking.KINDS, ids=lambda kind: kind.__name__)


@kinds
def test_count_code_and_line_are_torchs_own(kind: Any) -> None:
    result = run(kind)
    assert result.error is None
    assert result.warnings() == []
    breaks = result.recording.all(GraphBreak)
    assert breaks
    places = [item.inside or item.location for item in breaks]
    ours = [(item.gb, p.file, p.line) for item, p in zip(breaks, places, strict=True)]
    assert ours == result.break_sites()
    assert {item.location.file for item in breaks} == {breaking.__file__}


@kinds
def test_columns_are_those_of_the_instruction(kind: Any) -> None:
    expected = breaking.marked()
    for item in run(kind).recording.all(GraphBreak):
        line = item.source_line.encode()
        whole = item.location.end_line == item.location.line
        text = line[item.location.column : item.location.end_column if whole else None]
        assert text.decode().split("  #")[0] in expected[item.location.line]
        assert item.stack[-1] == item.location


@kinds
def test_what_crosses_is_what_the_resume_functions_take(kind: Any) -> None:
    result = run(kind)
    crossing = [item for item in result.recording.all(GraphBreak) if item.crossing]
    taken = [(set(names), stack) for stack, names in result.resumes]
    for item in crossing:
        names = {value.name for value in item.crossing if value.kind != "condition"}
        if len(names) < len(item.crossing):
            # a jump has two resume functions: each takes the locals that its side reads
            sides = [known for known, _ in taken if known <= names]
            assert set().union(*sides) == names
        else:
            # the instruction that broke leaves its result on the stack
            assert any(
                known <= names and len(names - known) in (stack, stack - 1)
                for known, stack in taken
            )


@kinds
def test_counters_of_torch_agree(kind: Any) -> None:
    result = run(kind)
    # torch counts only breaks that it raises and resumes from: no jumps, no skips, no steps
    counted = [
        item
        for item in result.recording.all(GraphBreak)
        if item.outcome == "break"
        and item.type != "Data-dependent branching"
        and item.reason.startswith("Encountered graph break when attempting")
    ]
    assert len(counted) == result.counted_breaks


@kinds
def test_every_break_has_advice_of_one_sentence(kind: Any) -> None:
    for item in run(kind).recording.all(GraphBreak):
        assert item.advice
        assert all("\n" not in advice.text for advice in item.advice)
        assert item.advice[0].by == "tcw" or not item.advice[0].text.startswith(BOILERPLATE)


def breaks(function: Any, *calls: Any, **options: Any) -> list[GraphBreak]:
    return compiled(function, *calls, **options).recording.all(GraphBreak)


X = torch.ones(2, 2)


def test_a_break_inside_the_library_is_placed_at_the_users_call() -> None:
    (item,) = run(breaking.makes_id).recording.all(GraphBreak)
    assert breaking.marked()[item.location.line] == ["uuid.uuid4()"]
    assert item.inside is not None
    assert item.inside.file == uuid.__file__


SETS_AN_ATTRIBUTE = {
    "2.11": ("GB0187", "functools.wraps"),
    "2.12": ("GB0059", "Failed to trace builtin operator"),
}
"""What these versions call a break at `setattr` of a function, or at what calls it."""


def hooked(x: torch.Tensor) -> torch.Tensor:
    return later(x) * 2


def later(x: torch.Tensor) -> torch.Tensor:
    """A function that is compiled when it is first called, as torchvision's `roi_align` is."""
    done = functools.wraps(hooked)(torch.compile(torch.sin, backend="eager"))
    return done(x)


def test_a_hook_that_compiles_lazily_breaks_on_its_own_line_and_torch_names_functools(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # eagerly, `wraps` writes into torch.sin itself, whose name is then another in every graph
    monkeypatch.setattr(torch.sin, "__module__", torch.sin.__module__)
    item = breaks(hooked, (X,))[0]
    assert (item.gb, item.type) == SETS_AN_ATTRIBUTE.get(
        torch.__version__[:4], ("GB0467", "setattr() on unsupported type")
    )
    assert item.source_line.strip().startswith("done = functools.wraps(hooked)")
    assert [place.function for place in item.stack] == ["hooked", "later"]
    assert item.advice[0].by == "tcw"
    assert "functools.wraps" in item.advice[0].text
    if torch.__version__.startswith("2.11."):
        assert item.inside is None, "this torch reports the call itself"
        return
    assert item.inside is not None
    assert (item.inside.file, item.inside.function) == (functools.__file__, "update_wrapper")
    (found,) = [
        finding
        for finding in summarise(Recording([item])).findings
        if isinstance(finding.source, BreakSite)
    ]
    assert f"torch reports it at functools.py:{item.inside.line}" in found.notes


def test_a_branch_sends_its_condition_to_the_host() -> None:
    (item,) = run(breaking.branch_clamp).recording.all(GraphBreak)
    h, condition = item.crossing
    assert (h.name, h.kind) == ("h", "")
    assert h.tensor is not None
    assert (h.tensor.shape, h.tensor.bytes) == ((2, 2), 16)
    assert (condition.name, condition.kind) == ("gt", "condition")
    assert condition.tensor is not None
    assert condition.tensor.dtype == "bool"


def test_a_break_in_a_loop_skips_the_frame_and_names_the_cause() -> None:
    result = run(breaking.prints_in_loop)
    (item,) = result.recording.all(GraphBreak)
    assert item.outcome == "skip-frame"
    assert item.type == "Failed to trace builtin operator"
    assert item.then == ("graph break in loop",)
    (end,) = result.recording.all(FrameEnd)
    assert end.status == "skipped"
    assert end.reason == "graph break in loop: Failed to trace builtin operator"


def test_the_stack_of_a_break_in_an_inlined_function() -> None:
    first, second = run(breaking.inlines).recording.all(GraphBreak)
    assert [place.function for place in first.stack] == ["inlines", "helper"]
    assert [place.function for place in second.stack] == ["helper"]
    assert first.location == second.location


def test_keyword_arguments_cannot_be_printed_later() -> None:
    """torch 2.13 drops them silently, torch 2.15 breaks."""
    (item,) = run(breaking.prints_with_keyword).recording.all(GraphBreak)
    assert [advice.code for advice in item.advice] == [""]


def test_the_stack_itself_crosses() -> None:
    (item,) = run(breaking.on_the_stack).recording.all(GraphBreak)
    assert [value.name for value in item.crossing] == ["sin", "cos"]


def test_fullgraph_records_the_break_that_is_raised() -> None:
    result = compiled(breaking.inlines, (X,), fullgraph=True)
    assert type(result.error).__name__ == "Unsupported"
    (item,) = result.recording.all(GraphBreak)
    assert item.outcome == "error"
    assert breaking.marked()[item.location.line] == ['print("inlined")']
    assert [place.function for place in item.stack] == ["inlines", "helper"]


def test_fullgraph_records_a_frame_that_is_refused() -> None:
    def generator(x: Any) -> Any:
        yield x + 1

    result = compiled(lambda x: list(torch.compile(generator, backend="eager", fullgraph=True)(x)),
                      (X,), compile=False)  # fmt: skip
    (item,) = result.recording.all(GraphBreak)
    assert (item.type, item.outcome) == ("Attempt to trace generator", "error")
    assert item.location.line == generator.__code__.co_firstlineno


def test_error_on_graph_break_is_an_error() -> None:
    def run_it(x: Any) -> Any:
        with torch._dynamo.error_on_graph_break(True):
            return torch.compile(breaking.prints, backend="eager")(x)

    result = compiled(run_it, (X,), compile=False)
    assert result.error is not None
    assert [item.outcome for item in result.recording.all(GraphBreak)] == ["error"]


@torch.library.custom_op("breaking::no_fake", mutates_args=())
def no_fake(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


def test_a_custom_operator_without_a_fake_implementation() -> None:
    def function(x: Any) -> Any:
        y = x + 1
        return torch.ops.breaking.no_fake(y) * 2

    result = compiled(function, (X,))
    (item,) = result.recording.all(GraphBreak)
    assert result.error is not None
    assert item.outcome == "error"
    assert 'register_fake("breaking::no_fake")' in item.advice[0].code


def test_a_wrong_shape_is_no_graph_break() -> None:
    result = compiled(lambda x: x @ torch.ones(7, 3), (X,))
    assert result.error is not None
    assert result.recording.all(GraphBreak) == []


def test_a_branch_on_a_captured_number() -> None:
    def function(x: Any) -> Any:
        n = x.sum().item()
        if n > 3:
            x = x * 2
        return x + 1

    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        result = compiled(function, (X,), fullgraph=True)
    (item,) = result.recording.all(GraphBreak)
    assert item.outcome == "error"
    assert item.source_line.strip() == "if n > 3:"
    assert item.advice[0].by == "tcw"


def test_a_break_inside_torch_cond() -> None:
    def function(x: Any) -> Any:
        return torch.cond(x.sum() > 0, lambda q: q + 1, lambda q: q[:1], (x,))

    result = compiled(function, (X,))
    assert type(result.error).__name__ == "UncapturedHigherOrderOpError"
    (item,) = result.recording.all(GraphBreak)
    assert item.outcome == "error"
    assert "torch.cond(x.sum()" in item.source_line


def test_callers_go_on_too_where_torch_breaks_inside_them() -> None:
    with torch._dynamo.config.patch(nested_graph_breaks=True):
        (item,) = breaks(breaking.inlines, (X,))
    assert {value.name for value in item.crossing} == {"y", "z"}


def test_each_call_breaks_under_its_own_number() -> None:
    items = breaks(breaking.prints, (X,), (torch.ones(3, 2),), dynamic=False)
    assert [(item.compile_id, item.call) for item in items] == [("0/0", 1), ("0/1", 2)]


def test_messages_of_users_may_hold_anything() -> None:
    def function(x: Any) -> Any:
        y = x + 1
        torch._dynamo.graph_break(msg="\x1b[31m[/nope] *** While handling")
        return y

    (item,) = breaks(function, (X,))
    assert "\x1b[31m[/nope]" in item.context + item.explanation


def test_what_torchs_optimizers_request_is_not_the_users_to_remove() -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    weight.grad = torch.ones(3)
    optimizer = torch.optim.SGD([weight], lr=0.1)

    def update() -> None:
        optimizer.step()

    found = compiled(update, ()).recording.all(GraphBreak)
    assert found
    assert not any("Remove" in advice.text for item in found for advice in item.advice)


def test_the_cache_of_resume_functions_is_as_before() -> None:
    assert ContinueExecutionCache.lookup.__name__ == "lookup"
