"""CUDA graphs (`mode="reduce-overhead"`): recorded, recorded again, and not used, and why.

Importing cudagraph_trees leaves objects in the thread that does (`_stash_obj_in_tls`), for which
the thread takes the GIL when it ends: at the end of a process, that aborts it. So the module is
patched when torch imports it, for the first CUDA graph.

A `CUDAGraphTreeManager` (torch/_inductor/cudagraph_trees.py) runs each compiled function once,
records it in its second call, and then replays it, if a recording suits the call: else
`CUDAGraphNode.check_invariants` says why not, and it is recorded again, until a limit.

What is not recorded is reported through `log_cudagraph_skip_and_bump_counter`
(torch/_inductor/cudagraph_utils.py), which its modules import by name. The message ends with the
stack of the operation at fault if torch knows it. Where only a part of a graph cannot be recorded,
the scheduler splits the graph (`Scheduler.graph_partition`).
"""

from __future__ import annotations

import importlib
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from tcw.compiler.control.hooks import (
    Missing,
    RecordingHook,
    Uninstall,
    after_call,
    around_call,
    before_call,
    undo_all,
)
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.graphs.current import current_compile_id, graph_id, lowering_graph_id, name_of
from tcw.compiler.graphs.lines import parse_stack_trace
from tcw.compiler.trace.compile_names import compile_of
from tcw.compiler.trace.cudagraph_reasons import STACK, moved_inputs, reason_of, stack_of
from tcw.compiler.trace.records import CudagraphRecording, CudagraphSkip, Location
from tcw.start_up import when_imported

_TREES = "torch._inductor.cudagraph_trees"
_FUNCTION = "log_cudagraph_skip_and_bump_counter"
_COMPILING = ("torch._inductor.output_code", "torch._inductor.compile_fx")
AFTER_ANOTHER = "it follows another CUDA graph than before"
ALIVE = "outputs of earlier calls are alive: it is run to warm up again and again"
POLICY = "torch._inductor.config.cudagraph_policy"
SMALL = "fewer kernels than torch._inductor.config.triton.cudagraph_min_partition_size"


class _Here(threading.local):
    def __init__(self) -> None:
        self.refused: list[tuple[Any, Any]] = []
        """(reference to a recording, torch's status) of the recordings that did not suit the call
        that this thread makes now."""
        self.graph = ""
        """The graph for which torch looks at mutated inputs now."""
        self.reported = 0
        """Skips that torch has reported."""


@dataclass
class _Function:
    """One of a manager's functions: a graph or a part of one, for one set of sizes."""

    graph: str
    part: str
    recorded: int = 0
    grown: int | None = None
    """Bytes by which the allocator's memory grew when it was run to warm up, in the same pool."""


@dataclass
class _Begun:
    """A recording that is being made."""

    function: _Function
    sizes: tuple[int, ...]
    reason: str
    inputs: tuple[str, ...]
    location: Location | None
    reserved: int | None
    start: float


@dataclass
class _Graphs:
    """What the hook knows of the process's graphs."""

    recorder: Recorder
    here: _Here = field(default_factory=_Here)
    names: weakref.WeakKeyDictionary[Any, str] = field(default_factory=weakref.WeakKeyDictionary)
    """A compiled function, and a recording of one -> its graph."""
    functions: weakref.WeakKeyDictionary[Any, dict[int, _Function]] = field(
        default_factory=weakref.WeakKeyDictionary
    )
    """By manager and torch's number of the function."""

    def compiled(self, model: Any, *_: Any, **kwargs: Any) -> None:
        """A compiled graph, or a part of one, will be recorded when it is called: the arguments of
        `cudagraphify`."""
        flags = kwargs.get("is_backward"), kwargs.get("is_inference")
        self.names[model] = lowering_graph_id(*flags)

    def function(self, manager: Any, number: Any) -> _Function:
        known = self.functions.setdefault(manager, {})
        found = known.get(number.id)
        if found is None:
            model = manager.ids_to_funcs[number].model
            name = str(getattr(model, "__name__", ""))
            found = known[number.id] = _Function(
                self.names.get(model) or _graph_of(manager, number),
                name if name.startswith("partition_") else "",
            )
        return found

    def begins(self, manager: Any, inputs: list[Any], number: Any) -> _Begun:
        """The manager is about to record a function, with these inputs."""
        function = self.function(manager, number)
        refused, self.here.refused = self.here.refused, []
        text, again = "", function.recorded
        if again:
            text = _why(refused, inputs) or AFTER_ANOTHER
        stack = parse_stack_trace(stack_of(text))
        return _Begun(
            function,
            sizes=tuple(one for one in inputs if type(one) is int and abs(one) < 2**63),
            reason=reason_of(text) if text else "",
            inputs=moved_inputs(text),
            location=stack[-1] if stack else None,
            reserved=_reserved(manager.device_index),
            start=time.perf_counter(),
        )

    def ends(self, manager: Any, begun: _Begun) -> None:
        """The recording was made."""
        seconds = time.perf_counter() - begun.start
        function = begun.function
        grown = _sum(_grown(begun.reserved, manager), function.grown)
        function.grown = None
        node = manager.current_node
        if node is not None:
            self.names[node] = function.graph
        if begun.location is not None:
            self.recorder.source(begun.location.file)
        self.recorder.emit(
            CudagraphRecording(
                graph=function.graph,
                compile_id=compile_of(function.graph),
                part=function.part,
                sizes=begun.sizes,
                again=function.recorded,
                reason=begun.reason,
                inputs=begun.inputs,
                location=begun.location,
                seconds=seconds,
                bytes=grown,
                call=self.recorder.call,
            )
        )
        function.recorded += 1

    def warmed(self, manager: Any, number: Any, before: int | None) -> None:
        """A function was run in the pool of its recordings, to warm up."""
        function = self.function(manager, number)
        function.grown = _sum(_grown(before, manager), function.grown)

    def skipped(self, message: str) -> None:
        """Torch says why a graph is not recorded, while it is compiled or called."""
        self.here.reported += 1
        graph = self.here.graph
        if not graph and not current_compile_id() and self.here.refused:
            graph = self.names.get(self.here.refused[-1][0](), "")
        self.skip(message, graph=graph)

    @contextmanager
    def counting(self, compiled: Any, *_: Any, **__: Any) -> Iterator[None]:
        """A compiled graph (`CompiledFxGraph`) may be skipped inside the block. Of a graph that
        runs on no GPU, torch only counts that."""
        from torch._dynamo.utils import counters

        def unreported() -> int:
            return int(counters["inductor"]["cudagraph_skips"]) - self.here.reported

        before = unreported()
        yield
        for _skip in range(unreported() - before):
            why = getattr(compiled, "disabled_cudagraphs_reason", None) or POLICY
            Safely(self.recorder, HOOK.name)(self.skip, str(why))

    def skip(self, message: str, graph: str = "", scope: Any = "graph") -> None:
        stack = parse_stack_trace(stack_of(message))
        location = stack[-1] if stack else None
        if location is not None:
            self.recorder.source(location.file)
        self.recorder.emit(
            CudagraphSkip(
                reason=reason_of(message),
                compile_id=compile_of(graph) or current_compile_id(),
                location=location,
                scope=scope,
                graph=graph,
                call=self.recorder.call,
            )
        )

    @contextmanager
    def looking_at(self, graph: str) -> Iterator[None]:
        """Torch looks at the mutated inputs of this graph inside the block."""
        before, self.here.graph = self.here.graph, graph
        try:
            yield
        finally:
            self.here.graph = before

    def split(self, scheduler: Any, partitions: Any, signatures: Any) -> None:
        """A graph was split into parts, of which some are not recorded."""
        from torch._inductor import config
        from torch._inductor.virtualized import V

        if not (config.triton.cudagraphs and on_gpu()):
            return
        graph = lowering_graph_id(V.graph.is_backward, V.graph.is_inference)
        skips: dict[tuple[str, str], None] = {}
        for nodes, signature in zip(partitions, signatures, strict=True):
            for node in nodes if signature.skip_cudagraph else ():
                reason = scheduler.should_partition(node) or SMALL
                skips[reason, _stack_of(node.node)] = None
        for reason, stack in skips:
            self.skip(f"{reason}\n{STACK}\n{stack}", graph=graph, scope="part")


def _stack_of(node: Any) -> str:
    """Where a scheduler node's operation stands, or the last of those that it computes."""
    first = node.get_origin_node() if node is not None else None
    origins = [first] if first is not None else list(getattr(node, "origins", None) or ())
    stacks = [origin.meta.get("stack_trace") or "" for origin in origins]
    return max((stack for stack in stacks if stack), default="")


def on_gpu() -> bool:
    """Whether a part of the graph that Inductor compiles now runs on a GPU: only then does torch
    report how it was split."""
    from torch._inductor.utils import is_gpu
    from torch._inductor.virtualized import V

    return any(is_gpu(device) for device in V.graph.device_types)


def _graph_of(manager: Any, number: Any) -> str:
    """The graph of a function that was compiled before the recording began."""
    found = manager.id_to_compile_id.get(number)
    if found is None:
        return ""
    return graph_id(name_of(found), manager.id_to_mode[number].name.lower())


def _why(refused: list[tuple[Any, Any]], inputs: list[Any]) -> str:
    """Torch's words for why the last of these recordings does not suit, with the inputs that
    moved."""
    from torch._inductor.cudagraph_utils import CheckInvariantStatus, log_data_ptr_mismatch

    if not refused:
        return ""
    reference, status = refused[-1]
    node = reference()
    places: list[int] = []
    if node is not None and status == CheckInvariantStatus.CudagraphManagedIdxMismatch:
        places = node.cudagraph_managed_idxs
    elif node is not None and status == CheckInvariantStatus.StaticInputIdxMismatch:
        tensors = getattr(node, "tensor_static_input_idxs", None)
        places = node.static_input_idxs if tensors is None else tensors
    if not places:
        return str(status)
    placeholders, addresses = node.wrapped_function.placeholders, node.static_input_data_ptrs
    return str(log_data_ptr_mismatch(placeholders, inputs, addresses, places, status))


def _grown(before: int | None, manager: Any) -> int | None:
    now = _reserved(manager.device_index)
    return None if before is None or now is None else max(0, now - before)


def _sum(one: int | None, other: int | None) -> int | None:
    return one if other is None else other if one is None else one + other


def _reserved(device: int) -> int | None:
    """Bytes that the allocator holds on a device; None without a GPU."""
    import torch

    return int(torch.cuda.memory_reserved(device)) if torch.cuda.is_initialized() else None


def install(recorder: Recorder) -> Uninstall:
    graphs, trees = _Graphs(recorder), list[Uninstall]()
    safely = Safely(recorder, HOOK.name)
    compiling = list(_while_compiling(graphs, safely))
    waiting = when_imported(_TREES, safely.guarded(_patch_trees, graphs, trees))
    return undo_all(*compiling, lambda: undo_all(*trees)(), waiting)


def _while_compiling(graphs: _Graphs, safely: Safely) -> Iterator[Uninstall]:
    """What is found when a graph is compiled."""
    from torch._inductor import compile_fx
    from torch._inductor.output_code import CompiledFxGraph
    from torch._inductor.scheduler import Scheduler

    def partitioned(result: Any, scheduler: Any, *_: Any, **__: Any) -> None:
        safely(graphs.split, scheduler, *result)

    for name in ("__init__", "post_compile"):
        yield around_call(CompiledFxGraph, name, graphs.counting)
    for name in _COMPILING:
        yield _logs_skips(graphs, safely, importlib.import_module(name))
    yield before_call(compile_fx, "cudagraphify", safely.guarded(graphs.compiled))
    yield after_call(Scheduler, "graph_partition", partitioned)


def _logs_skips(graphs: _Graphs, safely: Safely, module: Any) -> Uninstall:
    """Skips that this module reports."""

    def logged(msg: Any = "", *_: Any, **__: Any) -> None:
        safely(graphs.skipped, str(msg))

    return before_call(module, _FUNCTION, logged)


def _patch_trees(graphs: _Graphs, undo: list[Uninstall], trees: Any) -> None:
    """Patch the module of the trees, which the program has imported."""
    from torch._inductor import cudagraph_utils

    if reason := HOOK.missing():
        raise Missing(reason)
    manager_class, here = trees.CUDAGraphTreeManager, graphs.here
    safely = Safely(graphs.recorder, HOOK.name)
    # a recording that is made while the tool repeats calls replays the user's graph too
    always = Safely(graphs.recorder, HOOK.name, even_quiet=True)
    success = cudagraph_utils.CheckInvariantStatus.SUCCESS

    def checked(found: Any, node: Any, *_: Any, **__: Any) -> None:  # runs in each call
        if found[0] is not success:
            here.refused.append((weakref.ref(node), found[0]))
        elif here.refused:
            here.refused.clear()

    @contextmanager
    def recording(
        manager: Any, new_inputs: Any, function_id: Any, *_: Any, **__: Any
    ) -> Iterator[None]:
        begun = always(graphs.begins, manager, new_inputs, function_id)
        yield
        if begun is not None:
            always(graphs.ends, manager, begun)

    @contextmanager
    def warming_up(
        manager: Any, new_inputs: Any, function_id: Any, *_: Any, **__: Any
    ) -> Iterator[None]:
        before = always(_reserved, manager.device_index)
        yield
        always(graphs.warmed, manager, function_id, before)

    def looking(manager: Any, function_id: Any, *_: Any, **__: Any) -> AbstractContextManager[None]:
        function = safely(graphs.function, manager, function_id)
        return graphs.looking_at(function.graph if function is not None else "")

    @contextmanager
    def warning(manager: Any, function_id: Any, *_: Any, **__: Any) -> Iterator[None]:
        known = function_id in manager.warned_functions
        yield
        if not known and function_id in manager.warned_functions:
            function = safely(graphs.function, manager, function_id)
            if function is not None:
                safely(graphs.skip, ALIVE, function.graph, "call")

    undo += [
        _logs_skips(graphs, safely, trees),
        around_call(manager_class, "_update_non_cudagraph_managed_mutation", looking),
        around_call(manager_class, "check_warn_on_unable_to_start_executing", warning),
        after_call(trees.CUDAGraphNode, "check_invariants", checked),
        around_call(manager_class, "record_function", recording),
        around_call(manager_class, "run_eager", warming_up),
    ]


_MANAGER = f"{_TREES}:CUDAGraphTreeManager"

HOOK = RecordingHook(
    name="cudagraphs",
    offers="CUDA graphs that were recorded, recorded again or not used, why, and at which line",
    needs=(
        *(f"{module}:{_FUNCTION}" for module in (*_COMPILING, _TREES)),
        f"{_TREES}:CUDAGraphNode.check_invariants(inputs)",
        f"{_MANAGER}.record_function(new_inputs, function_id)",
        f"{_MANAGER}.run_eager(new_inputs, function_id)",
        f"{_MANAGER}._update_non_cudagraph_managed_mutation(function_id)",
        f"{_MANAGER}.check_warn_on_unable_to_start_executing(function_id)",
        "torch._inductor.cudagraph_utils:log_data_ptr_mismatch",
        "torch._inductor.cudagraph_utils:CheckInvariantStatus.StaticInputIdxMismatch",
        "torch._inductor.compile_fx:cudagraphify(model, is_backward, is_inference)",
        "torch._inductor.output_code:CompiledFxGraph.post_compile",
        "torch._inductor.scheduler:Scheduler.graph_partition",
        "torch._inductor.scheduler:Scheduler.should_partition(node)",
        "torch._inductor.utils:is_gpu",
        "torch._dynamo.utils:counters",
    ),
    install=install,
    stage="build",
    later=_TREES,
    test="inductor/test_cudagraphs.py",
)
