"""CUDA graphs that are not used: torch's own functions decide and report; no GPU is needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters
from torch._inductor import compile_fx, cudagraph_trees, cudagraph_utils, output_code
from torch._inductor.utils import BoxedBool

from compiler.inductor import cudagraph_skips
from compiler.trace.records import CudagraphSkip
from tests.cpu.recorded import record

MODULES = (output_code, cudagraph_trees, compile_fx)
NAME = "log_cudagraph_skip_and_bump_counter"
STACK = f'  File "{__file__}", line 7, in forward\n    x.add_(1)\n'


def compiled_graph(**given: Any) -> Any:
    """What `cudagraph_post_compile` reads of a compiled graph that may not use a CUDA graph."""
    info = SimpleNamespace(cudagraph_fail_reasons=given.pop("fail_reasons", ["dynamic shapes"]))
    return SimpleNamespace(
        current_callable=lambda *args: None,
        cudagraph_info=info,
        fx_kwargs={"is_inference": True, "is_backward": False},
        device_types={"cuda"},
        **given,
    )


def test_torch_says_why_a_compiled_graph_uses_none() -> None:
    before = [getattr(one, NAME) for one in MODULES]
    skipped = counters["inductor"]["cudagraph_skips"]
    why = f"skipping cudagraphs due to cpu device (arg0_1). Found from : \n {STACK}"
    with record((cudagraph_skips.HOOK,)) as recorded:
        for reason in (why, None):
            graph = compiled_graph(disabled_cudagraphs_reason=reason)
            output_code.cudagraph_post_compile([], graph, BoxedBool(True), {}, None)
    assert counters["inductor"]["cudagraph_skips"] == skipped + 2, "torch's own counter"
    first, second = recorded.all(CudagraphSkip)
    assert first.reason == "cpu device (arg0_1)"
    assert first.location is not None
    assert (first.location.file, first.location.line) == (__file__, 7)
    assert second.reason == "['dynamic shapes']"
    assert second.location is None
    assert [getattr(one, NAME) for one in MODULES] == before, "the patch is undone"


def test_a_mutation_is_reported_with_its_line() -> None:
    """As torch words it for a graph whose inputs are mutated."""
    placeholder = cudagraph_utils.PlaceholderInfo(
        name="arg0_1", stack_trace=None, users=[], mutating_use_stack_trace=STACK
    )
    message = cudagraph_utils.get_mutation_stack_trace([placeholder], [0])
    with record((cudagraph_skips.HOOK,)) as recorded:
        for module in MODULES:
            getattr(module, NAME)(message)
    found = recorded.all(CudagraphSkip)
    assert len(found) == len(MODULES)
    assert {one.reason for one in found} == {"mutated inputs (1 instances)"}
    assert {one.location.line for one in found if one.location} == {7}


def test_what_torch_raises_comes_out() -> None:
    """With `cudagraph_or_error` a skip is an error, of which there is a record as well."""
    with (
        record((cudagraph_skips.HOOK,)) as recorded,
        torch._inductor.config.patch("triton.cudagraph_or_error", True),
        pytest.raises(RuntimeError, match="multiple devices"),
    ):
        output_code.log_cudagraph_skip_and_bump_counter(
            "skipping cudagraphs due to multiple devices"
        )
    assert [one.reason for one in recorded.all(CudagraphSkip)] == ["multiple devices"]
