"""Which stage makes a compiled call wrong: the call runs again through one stage more each time.

Each stage's graphs run in ATen, from the same inputs, state and random numbers as eager. The first
that is as far from eager as the compiled call is the stage; its first wrong node is found by
`tcw.compiler.measure.precision.wrong_node`.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from msgspec import structs
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch import config as functorch_config
from torch._functorch.partitioners import min_cut_rematerialization_partition

from tcw.compiler.control.hooks import Hook
from tcw.compiler.graphs.aten_facts import outputs_of_the_user
from tcw.compiler.graphs.nodes import target_name, user_line
from tcw.compiler.measure.calls.inputs import InputSet
from tcw.compiler.measure.calls.leaves import leaves
from tcw.compiler.measure.calls.runs import Model, RandomState, original_of, prepare
from tcw.compiler.measure.host import Host, reason_of
from tcw.compiler.measure.precision.arithmetic import NotComparable
from tcw.compiler.measure.precision.judge import accepted
from tcw.compiler.measure.precision.model_file import model_file
from tcw.compiler.measure.precision.repro import tried
from tcw.compiler.measure.precision.wrong_node import EagerValues, OutOfTime, Watch, apart, largest
from tcw.compiler.trace.matching import BACKWARD
from tcw.compiler.trace.records import Engine, OutputError, WrongStage
from tcw.compiler.trace.records.graph import GraphKind
from tcw.compiler.trace.records.measure import StageOfResult

HOOK = Hook(
    name="stages of a wrong call",
    offers="which stage makes compiled results wrong: the first wrong node, and its line",
    needs=(
        "torch._dynamo.backends.common:aot_autograd",
        "torch._functorch.partitioners:min_cut_rematerialization_partition",
        "torch._inductor.compile_fx:_recursive_post_grad_passes(gm, is_inference)",
        "torch._inductor.compile_fx:fake_tensor_prop",
        "torch._inductor.compile_fx:view_to_reshape",
        "torch._inductor.decomposition:select_decomp_table",
        "torch._inductor.virtualized:V",
    ),
    test="measure/precision/test_stages.py",
)
SECONDS = 20.0
"""For all runs together."""
ASKED_SECONDS = 120.0
"""The same if kernels are compared too, which takes as long."""
_SHARE = 1 / 16
"""Of the error that is looked for: a value this close to one of eager's is right."""
_LEAST_UNITS = 16.0
"""Units of float32 by which a right value may differ from eager's, relative to its largest."""

_NO_KERNEL = "no single kernel is wrong: their order, their memory, or what runs around them is"
_MISPLACED = (
    "each result of its graphs is one of eager's: one is in the wrong place, or what runs around "
    "the graphs is wrong"
)
_NOT_COMPARED = f"its kernels were not compared: to compile it again takes over {SECONDS:.0f} s"

Backend = Callable[[fx.GraphModule, Sequence[Any]], Callable[..., Any]]
Stage = Callable[[Watch, Engine], Backend]


def _captured(watch: Watch, engine: Engine) -> Backend:
    return lambda module, inputs: watch.of(module, "captured")


def _autograd(watch: Watch, engine: Engine) -> Backend:
    """AOTAutograd with the engine's decompositions and its partitioner."""

    def compiler(kind: GraphKind) -> Callable[..., Any]:
        return lambda module, inputs: _boxed(watch.of(module, kind))

    if engine == "tcw":
        from tcw.compiler.engine.backend import with_compilers

        return lambda module, inputs: with_compilers(module, inputs, compiler)
    from torch._inductor import decomposition

    return aot_autograd(  # type: ignore[no-any-return]
        fw_compiler=compiler("forward"),
        bw_compiler=compiler("backward"),
        inference_compiler=compiler("inference"),
        decompositions=decomposition.select_decomp_table,
        partition_fn=partial(min_cut_rematerialization_partition, compiler="inductor"),
    )


def _passes(watch: Watch, engine: Engine) -> Backend:
    """The same after all passes of the engine over its graphs."""
    if engine == "tcw":
        from tcw.compiler.engine.backend import with_compilers
        from tcw.compiler.rewrites.order import LOWERED, rewrite
        from tcw.compiler.rewrites.subject import Subject

        def compiler(kind: GraphKind) -> Callable[..., Any]:
            def compile(module: fx.GraphModule, inputs: Sequence[Any]) -> Any:
                users = outputs_of_the_user(module, kind)
                subject = Subject(module, inputs, "", kind=kind, promised=users)
                rewrite(LOWERED, subject, stage="lowered rewrites")
                module.recompile()
                return _boxed(watch.of(module, kind))

            return compile

        return lambda module, inputs: with_compilers(module, inputs, compiler)
    from torch._inductor import compile_fx
    from torch._inductor.virtualized import V

    def inner(module: fx.GraphModule, inputs: Sequence[Any], **options: Any) -> Any:
        compile_fx.view_to_reshape(module)
        with torch.no_grad():
            mode = compile_fx.fake_tensor_prop(module, inputs)
        inference = bool(options.get("is_inference"))
        with V.set_fake_mode(mode):
            compile_fx._recursive_post_grad_passes(module, is_inference=inference)
        module.recompile()
        kind: GraphKind = "backward" if options.get("is_backward") else "forward"
        return _boxed(watch.of(module, "inference" if inference else kind))

    return lambda module, inputs: compile_fx.compile_fx(module, inputs, inner_compile=inner)


_TITLES = {
    "capture": "the captured graph",
    "autograd": "AOTAutograd's graph",
    "passes": "the graph after the engine's passes",
}
STAGES: dict[StageOfResult, Stage] = {
    "capture": _captured, "autograd": _autograd, "passes": _passes,
}  # fmt: skip


def _boxed(run: Callable[..., Any]) -> Callable[..., Any]:
    def boxed(arguments: list[Any]) -> Any:
        given = tuple(arguments)
        arguments.clear()
        return run(*given)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed


@dataclass(frozen=True)
class WrongCall:
    """A call whose compiled results differ from eager's."""

    engine: Engine
    model: Model
    """As compiled by the engine."""
    sets: Sequence[InputSet]
    """The inputs of all calls, up to this one."""
    worst: OutputError
    """The result that differs most."""
    beside: Callable[[], None]
    """Makes the next compile count as the first."""


def wrong_stage(host: Host, call: WrongCall, kernels: Callable[[], str | None]) -> WrongStage:
    """Run the call stage by stage. `kernels` compares the call's kernels with what their operations
    give in float64, and returns the id of the first wrong one, "" if there is none, None if it
    cannot: it is asked if no stage is wrong.

    What cannot be told is unknown, with the reason; nothing fails."""
    began = time.monotonic()
    host.begins(f"call {call.worst.call}: which stage makes it wrong")
    state = RandomState.now()
    found = WrongStage(call=call.worst.call, engine=call.engine, result=call.worst.path)
    right: list[StageOfResult] = []
    if missing := HOOK.missing():
        return structs.replace(found, reason=missing)
    seconds = ASKED_SECONDS if host.settings.verify else SECONDS
    try:
        with host.unrecorded(), functorch_config.patch(enable_autograd_cache=False):
            found = _Bisection(host, call, began + seconds, right).found(found)
    except OutOfTime:
        found = structs.replace(found, reason=f"not found within {seconds:.0f} s")
    except Exception as error:  # anything that the user's model raises on another run
        found = structs.replace(found, reason=reason_of(error))
    finally:
        state.restore()
    if not found.stage and not found.reason:
        found = structs.replace(found, stage="kernels")
        kernel = kernels()
        if kernel:
            found = structs.replace(found, kernel=kernel)
        else:
            found = structs.replace(found, reason=_NO_KERNEL if kernel == "" else _NOT_COMPARED)
    return structs.replace(found, right=tuple(right), seconds=time.monotonic() - began)


class _Bisection:
    """Runs one call by one stage after the other."""

    def __init__(
        self, host: Host, call: WrongCall, deadline: float, right: list[StageOfResult]
    ) -> None:
        """`right` gets the stages that are right."""
        self.host = host
        self.call = call
        self._deadline = deadline
        self._right = right
        self._state = RandomState.now()

    def found(self, record: WrongStage) -> WrongStage:
        """The record with the stage, and where in it; without if every stage is right."""
        path, engine = record.result, self.call.engine
        start = copy.deepcopy(original_of(self.call.model))
        if isinstance(start, torch.nn.Module):
            start._compiled_call_impl = None
        ours = self._results(self.call.model).get(path)
        eager = EagerValues(self._deadline)
        right = self._results(copy.deepcopy(start), eager)
        theirs = right.get(path)
        error = apart(ours, theirs)
        if not error or accepted(ours, theirs):
            return structs.replace(record, reason="the call is right when it is made again")
        share = min(error / (largest(theirs) or error), 1.0)
        tolerance = max(share * _SHARE, _LEAST_UNITS * torch.finfo(torch.float32).eps)
        for name, stage in STAGES.items():
            watch = Watch(eager, tolerance)
            results = self._by_stage(start, watch, stage(watch, engine))
            if 2 * apart(results.get(path), theirs) >= error:
                if name != "capture" and _only_gradients_are_wrong(results, right, tolerance):
                    watch.runs = [run for run in watch.runs if run.graph.endswith(BACKWARD)]
                located = _located(structs.replace(record, stage=name), watch)
                return self._with_file(located, share)
            self._right.append(name)
        return record

    def _by_stage(self, start: Model, watch: Watch, backend: Backend) -> dict[str, Any]:
        """The call by a stage, after the calls before it: sizes that changed may be symbolic."""
        self.call.beside()
        model = copy.deepcopy(start)
        compiled = torch.compile(model, backend=backend, dynamic=self.host.settings.dynamic)
        for inputs in self.call.sets[:-1]:
            self._state.restore()
            prepare(compiled, inputs, self.host.settings.grad)()
            if isinstance(start, torch.nn.Module) and isinstance(model, torch.nn.Module):
                model.load_state_dict(start.state_dict())
        watch.runs.clear()
        return self._results(compiled)

    def _results(self, model: Model, eager: EagerValues | None = None) -> dict[str, Any]:
        """What the call leaves, by path."""
        self._state.restore()
        run = prepare(model, self.call.sets[-1], self.host.settings.grad)
        original = original_of(model)
        module = original if isinstance(original, torch.nn.Module) else None
        state = list(module.state_dict().values()) if module is not None else []
        if eager is not None:
            eager.add((run.positional, run.keyword, state))
        with eager or nullcontext():
            result = run.result(run())
        if eager is not None:  # what was changed in place: not every operation says so
            eager.add((run.positional, run.keyword, state))
        found = dict((*leaves(result.outputs), *result.gradients))
        after = dict(leaves((run.positional, run.keyword), "inputs"))
        if module is not None:
            after |= {f"buffer {name}": value for name, value in module.named_buffers()}
        return found | {f"{path} after the call": value for path, value in after.items()}

    def _with_file(self, record: WrongStage, share: float) -> WrongStage:
        """The record with a file that shows the error; it is run if kernels are compared too, which
        takes as long."""
        settings = self.host.settings
        backend = "eager" if record.stage == "capture" else record.engine
        place = f", {record.operation} ({record.node})" if record.node else ""
        title = f"Call {record.call} is wrong: {_TITLES[record.stage]}{place}"
        words = f"In the model {record.result} was off by {share:.2g} of its largest value."
        try:
            text = model_file(settings, self.call.sets[-1], backend, share, title, words)
        except NotComparable as error:
            return structs.replace(record, repro_note=str(error))
        record = structs.replace(record, repro=self.host.recorder.text(text))
        if not settings.verify:
            return record
        outcome = tried(text)
        return structs.replace(record, reproduces=outcome.shows, repro_note=outcome.words)


def _only_gradients_are_wrong(
    results: Mapping[str, Any], right: Mapping[str, Any], tolerance: float
) -> bool:
    """Whether what the forward leaves is right, so that no forward graph is to blame."""
    return all(
        apart(value, right.get(path)) <= tolerance * largest(right.get(path))
        for path, value in results.items()
        if not path.startswith("grad ")
    )


def _located(record: WrongStage, watch: Watch) -> WrongStage:
    """The record with the first wrong node."""
    if not watch.eager.complete:
        return structs.replace(record, reason="eager computes too much to keep for comparison")
    run = next((run for run in watch.runs if run.wrong), None)
    node = run.first_wrong() if run is not None else None
    if run is None:
        return structs.replace(record, reason=_MISPLACED)
    if node is None:
        return structs.replace(
            record, graph=run.graph, reason="the graph is right, and given wrong inputs"
        )
    original = node.meta.get("original_aten")
    return structs.replace(
        record,
        graph=run.graph,
        node=node.name,
        operation=target_name(original if original is not None else node.target),
        location=user_line(node),
    )
