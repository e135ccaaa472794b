"""Recompiles: what failed, what was expected and seen, where, and the advice."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo import config

from tcw.compiler.capture import HOOKS
from tcw.compiler.capture import recompiles as recompiles_hook
from tcw.compiler.trace.records import FrameEnd, GraphBreak, Guards, Recompile, Warned
from tests.cpu.capture.conftest import Capture
from tests.cpu.capture.recompiling import second_call
from tests.cpu.recorded import record
from tests.cpu.structured_trace import structured_trace

x = torch.ones(4, 8)


def scaled(x, factor=1.0, items=(), inner=torch.sin, mode="sin", table=None):
    h = inner(x) * factor
    for item in items:
        h = h + item
    for value in (table or {}).values():
        h = h + value
    return getattr(torch, mode)(h)


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rate, self.steps = 0.5, 2
        self.register_buffer("shift", torch.ones(4, 8))

    def forward(self, x):
        h = torch.nn.functional.dropout(x, 0.1, self.training)
        return h * self.rate * self.steps + self.shift.sum()


def scaled_by(rate: float) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda y: y * rate


@contextmanager
def setting(change: Callable[[Any], object], value: Any, back: Any) -> Iterator[None]:
    change(value)
    try:
        yield
    finally:
        change(back)


def under(mode: Any) -> Any:
    def call(compiled: Any) -> Any:
        with mode():
            return compiled(x)

    return call


CHANGES: dict[str, tuple[Any, Any, tuple[str, str, str, str], str]] = {
    "size": (
        lambda f: f(x), lambda f: f(torch.ones(6, 8)),
        ("TENSOR_MATCH", "x.size(0)", "4", "6"), "torch._dynamo.mark_dynamic(x, 0)",
    ),
    "size one": (
        lambda f: f(x), lambda f: f(torch.ones(1, 8)),
        ("TENSOR_MATCH", "x.size(0)", "4", "1"), "torch._dynamo.decorators.mark_unbacked(x, 0)",
    ),
    "rank": (
        lambda f: f(x), lambda f: f(torch.ones(2, 4, 8)),
        ("TENSOR_MATCH", "x.dim()", "2", "3"), "x = x.flatten(0, -2)",
    ),
    "dtype": (
        lambda f: f(x), lambda f: f(x.double()),
        ("TENSOR_MATCH", "x.dtype", "float32", "float64"), "x = x.to(torch.float32)",
    ),
    "device": (
        lambda f: f(x), lambda f: f(x.to("meta")),
        ("TENSOR_MATCH", "x.device", "cpu", "meta"), "x = x.to('cpu')",
    ),
    "stride": (
        lambda f: f(x), lambda f: f(torch.ones(8, 4).t()),
        ("TENSOR_MATCH", "x.stride(0)", "8", "1"), "x = x.contiguous()",
    ),
    "requires_grad": (
        lambda f: f(x), lambda f: f(x.clone().requires_grad_()),
        ("TENSOR_MATCH", "x.requires_grad", "False", "True"), "x = x.detach()",
    ),
    "not a tensor": (
        lambda f: f(x, torch.tensor(2.0)), lambda f: f(x, 2.0),
        ("TENSOR_MATCH", "factor", "a tensor", "float"), "factor = torch.as_tensor(factor)",
    ),
    "float": (
        lambda f: f(x, 1.0), lambda f: f(x, 0.5),
        ("CONSTANT_MATCH", "factor", "1.0", "0.5"), "factor = torch.tensor(factor)",
    ),
    "integer": (
        lambda f: f(x, 2), lambda f: f(x, 3),
        ("CONSTANT_MATCH", "factor", "2", "3"), "torch.compile(model, dynamic=True)",
    ),
    "text": (
        lambda f: f(x, mode="sin"), lambda f: f(x, mode="cos"),
        ("CONSTANT_MATCH", "mode", "'sin'", "'cos'"), "",
    ),
    "length": (
        lambda f: f(x, items=[x]), lambda f: f(x, items=[x, x]),
        ("SEQUENCE_LENGTH", "len(items)", "1", "2"), "",
    ),
    "no items before": (
        lambda f: f(x), lambda f: f(x, items=(x,)),
        ("SEQUENCE_LENGTH", "len(items)", "0", "1"), "",
    ),
    "keys": (
        lambda f: f(x, table={"a": x}), lambda f: f(x, table={"b": x}),
        ("DICT_KEYS_MATCH", "list(table.keys())[0]", "'a'", "'b'"), "",
    ),
    "function": (
        lambda f: f(x, inner=torch.sin), lambda f: f(x, inner=torch.cos),
        ("BUILTIN_MATCH", "inner", "function sin", "function cos"), "",
    ),
    "closure": (
        lambda f: f(x, inner=scaled_by(2.0)), lambda f: f(x, inner=scaled_by(3.0)),
        ("CONSTANT_MATCH", "rate of inner", "2.0", "3.0"), "",
    ),
    "grad mode": (
        lambda f: f(x), under(torch.no_grad),
        ("GLOBAL_STATE", "grad mode", "on", "off"), "",
    ),
    "autocast": (
        lambda f: f(x), under(lambda: torch.autocast("cpu")),
        ("GLOBAL_STATE", "autocast(cpu) enabled", "off", "on"), "",
    ),
    "default dtype": (
        lambda f: f(x),
        under(lambda: setting(torch.set_default_dtype, torch.float64, torch.float32)),
        ("GLOBAL_STATE", "default dtype", "float32", "float64"), "",
    ),
    "default device": (
        lambda f: f(x), under(lambda: torch.device("cpu")),
        ("TORCH_FUNCTION_STATE", "torch function modes", "none",
         "torch.utils._device.DeviceContext"), "",
    ),
    "inference": (
        lambda f: f(x), under(torch.inference_mode),
        ("GLOBAL_STATE", "grad mode", "on", "off"), "",
    ),
    "one tensor twice": (
        lambda f: f(x, torch.ones(4, 8)), lambda f: f(x, x),
        ("NO_TENSOR_ALIASING", "x, factor", "different tensors", "one tensor"), "",
    ),
    "two tensors": (
        lambda f: f(x, x), lambda f: f(x, torch.ones(4, 8)),
        ("DUPLICATE_INPUT", "x, factor", "one object", "different objects"), "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_what_changed_expected_and_seen(change: str, capture: Capture) -> None:
    first, second, wanted, code = CHANGES[change]
    record = second_call(capture, scaled, first, second)
    (failed,) = record.failed
    assert (failed.kind, failed.name, failed.expected, failed.seen) == wanted
    assert failed.entry == "0/0"
    assert failed.tested > 0
    assert failed.guard in record.reason
    assert record.advice
    assert record.advice[0].code == code
    assert capture.all(Warned) == []


def test_the_line_that_made_torch_depend_on_the_value(capture: Capture) -> None:
    record = second_call(capture, scaled, lambda f: f(x, 1.0), lambda f: f(x, 0.5))
    lines, first = inspect.getsourcelines(scaled)
    assert record.location is not None
    assert (record.location.file, record.location.line) == (__file__, first + 1)
    assert record.source_line.strip() == lines[1].strip() == "h = inner(x) * factor"
    assert record.function == "scaled"


def test_global_state_is_placed_where_the_users_own_code_makes_the_call(capture: Capture) -> None:
    record = second_call(capture, scaled, lambda f: f(x), under(torch.no_grad))
    assert record.location is not None
    assert (record.location.function, record.source_line.strip()) == ("call", "return compiled(x)")


MODULE_CHANGES: dict[str, tuple[Callable[[Layer], object], str, str]] = {
    "training": (lambda layer: layer.eval(), "self.training", ""),
    "float attribute": (
        lambda layer: setattr(layer, "rate", 0.25), "self.rate",
        "self.register_buffer('rate', torch.tensor(0.5))",
    ),
    "integer attribute": (
        lambda layer: setattr(layer, "steps", 3), "self.steps",
        "torch._dynamo.config.allow_unspec_int_on_nn_module = True",
    ),
    "buffer": (
        lambda layer: setattr(layer, "shift", torch.ones(5, 8)), "self.shift.size(0)",
        "torch._dynamo.config.force_parameter_static_shapes = False",
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", MODULE_CHANGES)
def test_module_state_that_changes(change: str, capture: Capture) -> None:
    act, name, code = MODULE_CHANGES[change]
    layer = Layer()

    def second(compiled: Any) -> Any:
        act(layer)
        return compiled(x)

    record = second_call(capture, layer, lambda f: f(x), second)
    assert record.failed[0].name == name
    assert record.advice[0].code == code


def test_every_size_that_changed_is_marked(capture: Capture) -> None:
    """torch stops at the first difference: with only that one marked, the next would recompile."""

    def two(ids, mask, table):
        return ids.sin() + mask.cos() + table.sum()

    compiled = torch.compile(two, backend="eager")
    capture.call(lambda: compiled(x, torch.ones(4, 8), torch.ones(3)))
    capture.call(lambda: compiled(torch.ones(6, 8), torch.ones(6, 8), torch.ones(3)))
    (record,) = capture.all(Recompile)
    assert record.advice[0].code == (
        "torch._dynamo.mark_dynamic(ids, 0)\ntorch._dynamo.mark_dynamic(mask, 0)"
    )
    torch._dynamo.reset()
    for size in (4, 6):
        names = {"torch": torch, "ids": torch.ones(size, 8), "mask": torch.ones(size, 8)}
        exec(record.advice[0].code, names)
        capture.call(lambda names=names: compiled(names["ids"], names["mask"], torch.ones(3)))
    assert capture.all(Recompile) == [record]


def test_the_users_own_line_comes_before_a_librarys(capture: Capture, tmp_path: Any) -> None:
    library = tmp_path / "site-packages" / "library.py"
    library.parent.mkdir()
    library.write_text("def layer(y):\n    return y.sin()\n")
    names: dict[str, Any] = {}
    exec(compile(library.read_text(), str(library), "exec"), names)
    layer = names["layer"]

    def calling(y):
        return layer(y)

    with structured_trace() as trace:
        record = second_call(capture, calling, lambda f: f(x), lambda f: f(torch.ones(6, 8)))
    assert record.location is not None
    assert record.location.file == __file__
    assert record.source_line.strip() == "return layer(y)"
    guard = next(g for g in capture.all(Guards)[0].guards if g.name == "y")
    assert guard.location is not None
    # torch 2.11 realises an argument when it is passed on, later versions when it is used
    tree = next(text for metadata, text in trace.events if "dynamo_cpp_guards_str" in metadata)
    says = next(line for line in tree.splitlines() if "check_tensor(L['y']" in line)
    assert guard.location.file == (__file__ if " in calling" in says else str(library))
    assert f"{Path(guard.location.file).name}:{guard.location.line} in " in says


def test_every_entry_has_its_own_line_and_advice(capture: Capture) -> None:
    compiled = torch.compile(scaled, backend="eager")
    for tensor, items in ((x, ()), (x.double(), ()), (x, [x])):
        capture.call(lambda tensor=tensor, items=items: compiled(tensor, items=items))
    recent, older = capture.all(Recompile)[-1].failed
    assert (recent.name, older.name) == ("x.dtype", "items")
    assert recent.advice[0].code == "x = x.to(torch.float64)"
    assert older.advice[0].code == "items = tuple(items)"
    assert older.location is not None
    assert older.source_line.strip() == "for item in items:"


def test_each_cache_entry_tells_why_it_did_not_serve(capture: Capture) -> None:
    compiled = torch.compile(scaled, backend="eager")
    for tensor, factor in ((x, 0.125), (x, 0.25), (x, 0.5), (torch.ones(6, 8), 0.5)):
        capture.call(lambda tensor=tensor, factor=factor: compiled(tensor, factor))
    first, second = capture.all(Recompile)
    assert (first.call, second.call) == (2, 4), "call 3 hit"
    assert [(f.entry, f.name, f.expected, f.seen) for f in second.failed] == [
        ("0/1", "x.size(0)", "4", "6"),
        ("0/0", "factor", "0.125", "0.5"),
    ]
    assert second.advice == second.failed[0].advice
    assert [failed.advice[0].code for failed in second.failed] == [
        "torch._dynamo.mark_dynamic(x, 0)",
        "factor = torch.tensor(factor)",
    ]
    assert second.location == second.failed[0].location
    guards = capture.all(Guards)[-1]
    assert [(size.name, size.value) for size in guards.dynamic if "size" in size.name] == [
        ("x.size(0)", 6)
    ]


def test_after_a_graph_break_the_caller_can_mark_nothing(capture: Capture) -> None:
    def broken(x):
        y = x.sin()
        torch._dynamo.graph_break()
        return y.cos()

    compiled = torch.compile(broken, backend="eager")
    capture.call(lambda: compiled(x))
    capture.call(lambda: compiled(torch.ones(6, 8)))
    before, after = capture.all(Recompile)
    assert before.advice[0].code == "torch._dynamo.mark_dynamic(x, 0)"
    assert after.function == "broken"
    assert after.advice[0].code == "torch.compile(model, dynamic=True)"


def test_an_object_that_is_gone(capture: Capture) -> None:
    compiled = torch.compile(lambda x, kind: x * kind.rate, backend="eager")

    def with_a_new_class() -> None:
        compiled(x, type("Settings", (), {"rate": 2.0}))

    capture.call(with_a_new_class)
    gc.collect()
    capture.call(with_a_new_class)
    (record,) = capture.all(Recompile)
    (failed,) = record.failed
    assert failed.guard == "Cache line invalidated because L['kind'] got deallocated"
    assert (failed.name, failed.seen) == ("kind", "deallocated")


def test_a_method_that_a_break_leaves_on_the_stack(capture: Capture) -> None:
    """`append` is a new object in each call. The advice is at the break, and helps."""

    class Inside(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[float] = []

        def forward(self, x):
            self.seen.append(float(x.max()))
            return x + 1

    class Before(Inside):
        def forward(self, x):
            value = float(x.max())
            self.seen.append(value)
            return x + 1

    def gone(module: torch.nn.Module) -> list[Recompile]:
        torch._dynamo.reset()
        compiled = torch.compile(module, backend="eager")
        for _ in range(3):
            capture.call(lambda: compiled(x))
        return [
            recompile
            for recompile in capture.all(Recompile)
            if recompile.failed[0].seen == "deallocated"
        ]

    assert gone(Before()) == []
    found = gone(Inside())
    if any(
        "qualname: list.append" in graph_break.context for graph_break in capture.all(GraphBreak)
    ):
        pytest.skip(f"torch {torch.__version__} breaks at the append too, and guards nothing of it")
    assert len(found) == 2
    for one in found:
        assert one.failed[0].source == "L['___stack0']"
        assert one.location is not None
        assert one.location.line == Inside.forward.__code__.co_firstlineno + 1
        assert one.advice[0].text.startswith("Compute what breaks the graph on a line of its")


def test_a_refused_recompile_is_recorded_all_the_same(capture: Capture) -> None:
    compiled = torch.compile(scaled, backend="eager")
    capture.call(lambda: compiled(x))
    with config.patch(error_on_recompile=True), pytest.raises(Exception, match="Recompiling"):
        capture.call(lambda: compiled(x.double()))
    (record,) = capture.all(Recompile)
    assert record.failed[0].name == "x.dtype"
    assert record.failed[0].guard in record.reason


def test_beyond_the_limit_torch_still_says_why(capture: Capture) -> None:
    compiled = torch.compile(scaled, backend="eager")
    with config.patch(recompile_limit=2):
        for mode in ("sin", "cos", "tan", "exp"):
            capture.call(lambda mode=mode: compiled(x, mode=mode))
    records = capture.all(Recompile)
    assert [record.call for record in records] == [2, 3]
    assert [len(record.failed) for record in records] == [1, 2]
    assert [end.status for end in capture.all(FrameEnd)] == ["compiled", "compiled", "skipped"]


def test_an_error_of_ours_does_not_reach_torch(
    capture: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any) -> Any:
        raise ValueError("our own mistake")

    monkeypatch.setattr(recompiles_hook, "explain_failed_entry", broken)
    compiled = torch.compile(scaled, backend="eager")
    capture.call(lambda: compiled(x))
    capture.call(lambda: compiled(x.double()))
    (record,) = capture.all(Recompile)
    assert record.failed == ()
    assert "dtype mismatch" in record.reason
    assert ["our own mistake" in warned.message for warned in capture.all(Warned)] == [True]


def test_a_guard_inside_torch_is_placed_where_the_users_own_code_calls_it() -> None:
    """An optimizer's step has no line outside torch."""
    parameter = torch.nn.Parameter(torch.ones(4))
    optimizer = torch.optim.AdamW([parameter], lr=0.5)
    with record(HOOKS) as recorded:
        update = torch.compile(optimizer.step, backend="eager")
        for rate in (0.5, 0.25):
            optimizer.param_groups[0]["lr"] = rate
            parameter.grad = torch.ones(4)
            update()
    (recompile,) = recorded.all(Recompile)
    assert recompile.failed[0].name == "self.param_groups[0]['lr']"
    assert recompile.source_line.strip() == "update()"
    (advice, *_) = recompile.advice
    (change,) = advice.changes
    assert change.text.strip() == "optimizer = torch.optim.AdamW([parameter], lr=torch.tensor(0.5))"


def halved(value):
    if value.shape[1] % 2 == 0:
        return value[:, ::2]
    return value


def compared(value):
    if value.shape[0] > 5 and halved(value).shape[0] < 20:
        return value * 2
    return halved(value)


@pytest.mark.parametrize(
    ("first", "second", "line", "function"),
    [
        ((9, 8), (4, 8), "if value.shape[0] > 5 and", "compared"),
        ((9, 8), (21, 8), "if value.shape[0] > 5 and", "compared"),
        ((3, 8), (7, 8), "if value.shape[0] > 5 and", "compared"),
        ((9, 8), (9, 7), "if value.shape[1] % 2 == 0:", "halved"),
    ],
)
def test_a_condition_on_sizes_is_located_at_the_line_that_makes_it(
    capture: Capture, first: Any, second: Any, line: str, function: str
) -> None:
    compiled = torch.compile(compared, backend="eager", dynamic=True)
    for shape in (first, second):
        capture.call(lambda shape=shape: compiled(torch.ones(shape)))
    (recompile,) = capture.all(Recompile)
    assert recompile.source_line.strip().startswith(line)
    assert recompile.location is not None
    assert recompile.location.function == function
    assert recompile.failed[0].location == recompile.location
