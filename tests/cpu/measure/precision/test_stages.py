"""Faults planted in capture, autograd and passes: the stage, operation and line are named."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import fx
from torch._inductor import config as inductor_config
from torch._inductor import decomposition

from tcw.compiler.control.hooks import patch
from tcw.compiler.engine import backend as engine_backend
from tcw.compiler.measure.calls.inputs import InputSet
from tcw.compiler.measure.calls.runs import prepare
from tcw.compiler.measure.host import Host
from tcw.compiler.measure.precision import stages
from tcw.compiler.measure.precision.stages import WrongCall, wrong_stage
from tcw.compiler.rewrites import order
from tcw.compiler.trace.records import Engine, OutputError, WrongStage
from tcw.compiler.trace.records.session import GradMode
from tcw.workbench.worker.forget import beside_what_is_compiled
from tests.cpu.recorded import record, without_codegen

aten = torch.ops.aten


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.batch = torch.nn.BatchNorm1d(16)
        """Its running statistics are changed by an operation that does not return them."""
        self.up = torch.nn.Linear(16, 32)
        self.norm = torch.nn.LayerNorm(32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.gelu(self.up(self.batch(x)))
        z = self.norm(y)
        z = z * 0.375
        return torch.softmax(z + y, -1)


def line_of(text: str) -> int:
    lines, first = inspect.getsourcelines(Model)
    return first + next(at for at, line in enumerate(lines) if text in line)


def edited(graph: fx.Graph) -> None:
    """The constant in `z * 0.375` becomes another one."""
    for node in graph.nodes:
        if node.op == "call_function" and 0.375 in node.args:
            node.args = tuple(0.5 if one == 0.375 else one for one in node.args)


@contextmanager
def fault_in_capture(engine: Engine) -> Iterator[None]:
    output_graph = torch._dynamo.output_graph.OutputGraph
    original = output_graph.call_user_compiler

    def call_user_compiler(self: Any, module: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        edited(module.graph)
        module.recompile()
        return original(self, module, *args, **kwargs)

    undo = patch(output_graph, "call_user_compiler", call_user_compiler)
    try:
        yield
    finally:
        undo()


def wrong_gelu(x: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    return x * 0.5 * (1 + torch.erf(x * 0.75))


def wrong_backward(
    grad: torch.Tensor, out: torch.Tensor, dim: int, dtype: torch.dtype
) -> torch.Tensor:
    return grad * out - out * (grad * out).sum(dim, keepdim=True) * 0.5


@contextmanager
def fault_in_autograd(engine: Engine, operation: Any, wrong: Any) -> Iterator[None]:
    def table(original: Any) -> Any:
        return lambda *args: {**original(*args), operation: wrong}

    module, name = (
        (engine_backend, "decompositions")
        if engine == "tcw"
        else (decomposition, "select_decomp_table")
    )
    undo = [patch(module, name, table(getattr(module, name)))]
    if engine == "inductor":
        compile_fx = torch._inductor.compile_fx
        undo.append(patch(compile_fx, name, table(compile_fx.select_decomp_table)))
    try:
        yield
    finally:
        for one in undo:
            one()


@contextmanager
def fault_in_passes(engine: Engine) -> Iterator[None]:
    if engine == "inductor":
        with inductor_config.patch(post_grad_custom_post_pass=edited):
            yield
        return
    original = order.rewrite

    def rewrite(rewrites: Any, subject: Any, *args: Any, **kwargs: Any) -> Any:
        found = original(rewrites, subject, *args, **kwargs)
        if rewrites is order.LOWERED:
            edited(subject.module.graph)
            subject.module.recompile()
        return found

    from tcw.compiler.engine import compile as engine_compile

    undo = [patch(module, "rewrite", rewrite) for module in (order, engine_compile)]
    try:
        yield
    finally:
        for one in undo:
            one()


def bisected(
    engine: Engine, grad: GradMode, result: str, sizes: tuple[int, ...] = (4,), whole: bool = False
) -> WrongStage:
    """`whole`: Inductor generates code, which faults in earlier stages do not need."""
    torch.manual_seed(0)
    model = Model()
    sets = [InputSet((torch.randn(size, 16),)) for size in sizes]
    inductor: Any = "inductor" if whole else without_codegen
    with record((), grad=grad) as recorded:
        host = Host(recorded.recorder, nullcontext)
        compiled = torch.compile(
            model, backend=engine_backend.backend if engine == "tcw" else inductor
        )
        worst = OutputError(call=len(sizes), path=result, max_abs=1.0, max_rel=1.0)
        call = WrongCall(engine, compiled, sets, worst, beside_what_is_compiled)
        for inputs in sets:
            prepare(compiled, inputs, grad)()
        found = wrong_stage(host, call, lambda: "")
        if found.repro:
            compile(recorded.text(found.repro), "repro_graph.py", "exec")
    return found


ENGINES: tuple[Engine, ...] = ("inductor", "tcw")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_graph_that_is_captured_wrongly(engine: Engine) -> None:
    with fault_in_capture(engine):
        found = bisected(engine, "no-grad", "out", (4, 6))
    assert (found.stage, found.right, found.operation) == ("capture", (), "operator.mul")
    assert found.location is not None
    assert found.location.line == line_of("z * 0.375")
    assert found.repro


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("operation", "wrong", "result", "text"),
    [
        (aten.gelu.default, wrong_gelu, "out", "F.gelu"),
        (aten._softmax_backward_data.default, wrong_backward, "grad up.weight", "softmax"),
    ],
    ids=["forward", "backward"],
)
def test_a_wrong_decomposition(
    engine: Engine, operation: Any, wrong: Any, result: str, text: str
) -> None:
    with fault_in_autograd(engine, operation, wrong):
        found = bisected(engine, "train", result)
    assert (found.stage, found.right) == ("autograd", ("capture",))
    assert found.operation == str(operation)
    assert found.location is not None
    assert found.location.line == line_of(text)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_wrong_pass(engine: Engine) -> None:
    with fault_in_passes(engine):
        found = bisected(engine, "no-grad", "out", whole=True)
    assert (found.stage, found.right) == ("passes", ("capture", "autograd"))
    assert found.operation == "aten.mul.Tensor"
    assert found.location is not None
    assert found.location.line == line_of("z * 0.375")


def test_what_is_right_again_or_takes_too_long_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    found = bisected("tcw", "no-grad", "out")
    assert (found.stage, found.right) == ("", ())
    assert "right when it is made again" in found.reason
    monkeypatch.setattr(stages, "SECONDS", 0.0)
    with fault_in_capture("tcw"):
        found = bisected("tcw", "no-grad", "out")
    assert (found.stage, found.node) == ("", "")
    assert found.reason
