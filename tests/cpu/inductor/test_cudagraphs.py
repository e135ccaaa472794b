"""CUDA graphs that are recorded, recorded again, and not used.

torch's own functions decide and report. Without a GPU, the recording itself (`CUDAGraphNode`) is
replaced; whether one suits a call is checked by torch on tensors of the CPU.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections import defaultdict
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from torch._dynamo.utils import counters
from torch._inductor import compile_fx, cudagraph_trees, cudagraph_utils, output_code
from torch._inductor.utils import BoxedBool

from tcw.compiler.inductor import cudagraph_hook
from tcw.compiler.trace.cudagraph_reasons import NO_GPU
from tcw.compiler.trace.records import CudagraphRecording, CudagraphSkip
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
    with record((cudagraph_hook.HOOK,)) as recorded:
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


def test_the_trees_are_patched_when_torch_imports_them(monkeypatch: pytest.MonkeyPatch) -> None:
    name = cudagraph_trees.__name__
    # torch 2.11 frees what the first import left there, and reads it afterwards
    monkeypatch.setattr(torch._C, "_stash_obj_in_tls", lambda *_: None)
    monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(torch._inductor, "cudagraph_trees", cudagraph_trees)  # put back at the end
    watching = len(sys.meta_path)
    with record((cudagraph_hook.HOOK,)):
        assert name not in sys.modules
        trees = importlib.import_module(name)
        assert hasattr(trees.CUDAGraphTreeManager.run_eager, "__wrapped__")
        assert hasattr(getattr(trees, NAME), "__wrapped__")
    assert not hasattr(trees.CUDAGraphTreeManager.run_eager, "__wrapped__"), "the patch is undone"
    assert not hasattr(getattr(trees, NAME), "__wrapped__")
    monkeypatch.delitem(sys.modules, name)
    with record((cudagraph_hook.HOOK,)):
        assert len(sys.meta_path) == watching + 1
    assert len(sys.meta_path) == watching, "a recording that has ended waits for nothing"


def test_a_mutation_is_reported_with_its_line() -> None:
    """As torch words it for a graph whose inputs are mutated."""
    placeholder = cudagraph_utils.PlaceholderInfo(
        name="arg0_1", stack_trace=None, users=[], mutating_use_stack_trace=STACK
    )
    message = cudagraph_utils.get_mutation_stack_trace([placeholder], [0])
    with record((cudagraph_hook.HOOK,)) as recorded:
        for module in MODULES:
            getattr(module, NAME)(message)
    found = recorded.all(CudagraphSkip)
    assert len(found) == len(MODULES)
    assert {one.reason for one in found} == {"mutated inputs (1 instances)"}
    assert {one.location.line for one in found if one.location} == {7}


def test_what_torch_raises_comes_out() -> None:
    """With `cudagraph_or_error` a skip is an error, of which there is a record as well."""
    with (
        record((cudagraph_hook.HOOK,)) as recorded,
        torch._inductor.config.patch("triton.cudagraph_or_error", True),
        pytest.raises(RuntimeError, match="multiple devices"),
    ):
        output_code.log_cudagraph_skip_and_bump_counter(
            "skipping cudagraphs due to multiple devices"
        )
    assert [skip.reason for skip in recorded.all(CudagraphSkip)] == ["multiple devices"]


class Node(cudagraph_trees.CUDAGraphNode):
    """A recording that was made without a GPU: of the addresses of its inputs."""

    def __init__(self, wrapped: Any, number: Any, parent: Any, inputs: list[Any], *_: Any) -> None:
        self.wrapped_function, self.id, self._parent = wrapped, number, None
        self.children = defaultdict(list)
        self.outputs_weakrefs, self.path_weakrefs, self.stack_traces = [], [], []
        self.cudagraph_managed_idxs: list[int] = []
        self.expected_dead_indices_before_graph: list[Any] = []
        self.expected_dead_indices_after_graph: list[Any] = []
        self.preserved_aliased_inputs = [False] * len(inputs)
        self.rerecord_if_static_inputs_change = True
        self.static_input_idxs = self.tensor_static_input_idxs = list(wrapped.static_input_idxs)
        self.static_input_data_ptrs = [
            one.data_ptr() if number in self.static_input_idxs else None
            for number, one in enumerate(inputs)
        ]

    def run_first_inputs(self, inputs: list[Any]) -> list[Any]:
        return ["recorded"]

    def run(self, inputs: list[Any]) -> list[Any]:
        return ["replayed"]

    def all_outputs_are_dead(self) -> bool:
        return True

    def clear_path_state(self) -> None:
        pass


def equal(tensors: list[Any], addresses: list[Any], places: list[int]) -> bool:
    """torch's own in Python: a torch for CPUs lacks it."""
    return all(tensors[place].data_ptr() == addresses[place] for place in places)


def without_gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A manager as torch makes it, in a pool that is none: each version keeps other things."""
    with monkeypatch.context() as patch:
        for name in ("device", "graph"):
            patch.setattr(torch.cuda, name, lambda *_, **__: nullcontext())
        for name in ("Stream", "CUDAGraph", "current_stream", "graph_pool_handle"):
            patch.setattr(torch.cuda, name, Mock())
        patch.setattr(torch._C, "_set_cached_tensors_enabled", Mock(), raising=False)
        return cudagraph_trees.CUDAGraphTreeManager(0)


def manager_of(model: Any, monkeypatch: pytest.MonkeyPatch, **function: Any) -> Any:
    """A manager of torch's with one function, which has been run to warm up."""
    monkeypatch.setattr(cudagraph_trees, "CUDAGraphNode", Node)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: None)
    monkeypatch.setattr(torch._C, "_tensors_data_ptrs_at_indices_equal", equal, raising=False)
    manager = without_gpu(monkeypatch)
    number = cudagraph_utils.FunctionID(0)
    names = ("w", "x")
    placeholders = [cudagraph_utils.PlaceholderInfo(name, STACK, [], STACK) for name in names]
    given = {
        "model": model, "static_input_idxs": [0], "id": number, "constants": (),
        "placeholders": placeholders, "mutated_input_idxs": function.pop("mutated", []),
    }  # fmt: skip
    fields = inspect.signature(cudagraph_utils.WrappedFunction).parameters
    unset = dict.fromkeys(name for name, field in fields.items() if field.default is field.empty)
    manager.ids_to_funcs[number] = cudagraph_utils.WrappedFunction(**{**unset, **given})
    manager.ids_to_stack_traces[number] = []
    manager.id_to_mode[number] = cudagraph_trees.CompilationMode.INFERENCE
    manager.id_to_compile_id[number] = None
    manager.warmed_up_functions.add(number)
    return lambda *inputs: manager.run(list(inputs), number)


def test_recordings_and_why_they_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """`run` and `check_invariants` are torch's."""
    weights = [torch.ones(2) for _ in range(3)]
    with record((cudagraph_hook.HOOK,)) as recorded:
        call = manager_of(lambda inputs: ["run"], monkeypatch)
        answers = [call(weights[place], torch.ones(2))[0] for place in (0, 0, 1, 1, 0, 2)]
    assert answers == ["recorded", "replayed", "recorded", "replayed", "replayed", "recorded"]
    first, *again = recorded.all(CudagraphRecording)
    assert (first.again, first.reason, first.inputs, first.location) == (0, "", (), None)
    assert [one.again for one in again] == [1, 2]
    for one in again:
        assert one.reason == str(cudagraph_utils.CheckInvariantStatus.StaticInputIdxMismatch)
        assert one.inputs == ("w",)
        assert one.location is not None
        assert (one.location.file, one.location.line) == (__file__, 7)
        assert 0 < one.seconds < 10
        assert one.bytes is None, "there is no GPU whose memory it could be"


def test_an_input_that_is_written_is_a_skip_of_its_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    skipped = counters["inductor"]["cudagraph_skips"]
    with record((cudagraph_hook.HOOK,)) as recorded:

        def model(inputs: list[Any]) -> list[Any]:
            return ["run"]

        compile_fx.cudagraphify(model, (0,), device_index=0, stack_traces=[], is_backward=False,
                                is_inference=True)  # fmt: skip
        call = manager_of(model, monkeypatch, mutated=[1])
        assert [call(torch.ones(2), torch.ones(2)) for _ in range(3)] == [["run"]] * 3
    assert counters["inductor"]["cudagraph_skips"] == skipped + 1
    (skip,) = recorded.all(CudagraphSkip)
    assert (skip.reason, skip.graph) == ("mutated inputs (1 instances)", "/inference")
    assert skip.location is not None
    assert skip.location.line == 7
    assert not recorded.all(CudagraphRecording)


@pytest.mark.skipif(
    torch.__version__.startswith("2.12."), reason="torch 2.12 records without a limit"
)
def test_too_many_recordings_are_a_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch counts recordings that were not expected, and stops."""
    status = cudagraph_utils.CheckInvariantStatus.CudagraphManagedIdxMismatch
    monkeypatch.setattr(
        cudagraph_trees.CUDAGraphNode,
        "check_invariants",
        lambda self, inputs: (status, lambda: f"{status}"),
    )
    with (
        torch._inductor.config.patch("triton.cudagraph_unexpected_rerecord_limit", 1),
        torch._dynamo.config.patch(inline_inbuilt_nn_modules=False),  # torch 2.11 has no limit else
        record((cudagraph_hook.HOOK,)) as recorded,
    ):
        call = manager_of(lambda inputs: ["run"], monkeypatch)
        answers = [call(torch.ones(2), torch.ones(2))[0] for _ in range(4)]
    assert answers == ["recorded", "recorded", "run", "run"]
    again = recorded.all(CudagraphRecording)[1]
    assert (again.reason, again.inputs) == (str(status), ())
    (skip,) = recorded.all(CudagraphSkip)
    assert "exceeding max re-recording limit (=1)" in skip.reason
    assert skip.reason.endswith(str(status))


def test_parts_that_are_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch's scheduler splits the graph: all of it is on the CPU, which the hook takes for a
    GPU."""
    monkeypatch.setattr(cudagraph_hook, "on_gpu", lambda: True)

    def model(x: torch.Tensor) -> torch.Tensor:
        return x.sin() + 1

    with (
        torch._inductor.config.patch({"triton.cudagraphs": True, "graph_partition": True}),
        record((cudagraph_hook.HOOK,)) as recorded,
    ):
        torch.compile(model)(torch.ones(8))
    part, whole = recorded.all(CudagraphSkip)
    assert (whole.scope, whole.reason) == ("graph", NO_GPU)
    assert (part.scope, part.reason, part.graph) == ("part", "cpu ops", "0/0/inference")
    assert part.location is not None
    assert part.location.line == model.__code__.co_firstlineno + 1


@pytest.mark.parametrize(("parts", "why"), [(True, NO_GPU), (False, "cpu device (")])
def test_what_torch_only_counts(parts: bool, why: str) -> None:
    """Of a graph on the CPU, torch says nothing."""

    def model(x: torch.Tensor) -> torch.Tensor:
        return x.sin() + 1

    counters.clear()
    with (
        torch._inductor.config.patch({"triton.cudagraphs": True, "graph_partition": parts}),
        record((cudagraph_hook.HOOK,)) as recorded,
    ):
        torch.compile(model)(torch.ones(8))
    (skip,) = recorded.all(CudagraphSkip)
    assert counters["inductor"]["cudagraph_skips"] == 1
    assert skip.reason.startswith(why)
    assert skip.compile_id == "0/0"
    line = skip.location and skip.location.line
    assert line == (None if parts else model.__code__.co_firstlineno + 1)
