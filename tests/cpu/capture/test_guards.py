"""Guards: torch's own count and order, values, names, lines, dynamic sizes."""

from __future__ import annotations

import importlib.util
import inspect
import linecache
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo import guards as torch_guards

from tcw.compiler.capture import HOOKS
from tcw.compiler.capture import compile_guards as guards_hook
from tcw.compiler.capture.guard_tree import parse_global_state, walk_guard_tree
from tcw.compiler.trace.records import Guard, Guards, Source, Warned
from tests.cpu.capture.conftest import Capture
from tests.cpu.recorded import record


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(8, 8)])
        self.scale = 2.0
        self.register_buffer("shift", torch.zeros(8))

    def forward(self, x, factor=1.0, mode="relu"):
        for layer in self.layers:
            x = layer(x)
        x = x * self.scale
        return getattr(torch, mode)(x) * factor + self.shift


def line_of(function: Any, text: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(index for index, line in enumerate(lines) if text in line)


def of(record: Guards, name: str, kind: str) -> Guard:
    return next(guard for guard in record.guards if (guard.name, guard.kind) == (name, kind))


def compiled(model: Any, **options: Any) -> Any:
    return torch.compile(model, backend="eager", **options)


def test_all_guards_in_the_order_in_which_torch_builds_them(
    capture: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[list[tuple[str, str]]] = []
    build = torch_guards.CheckFunctionManager.build_guards

    def building(self: Any, sorted_guards: Any, *args: Any, **kwargs: Any) -> Any:
        built.append([(guard.create_fn_name(), guard.name) for guard in sorted_guards])
        return build(self, sorted_guards, *args, **kwargs)

    monkeypatch.setattr(torch_guards.CheckFunctionManager, "build_guards", building)
    model = compiled(Scaled())
    capture.call(lambda: model(torch.ones(2, 8)))
    (record,) = capture.all(Guards)
    assert [(guard.kind, guard.source) for guard in record.guards] == built[0]
    assert record.compile_id == "0/0"
    assert record.call == 1
    assert record.function == "forward"


def test_values_names_and_lines(capture: Capture) -> None:
    model = compiled(Scaled())
    capture.call(lambda: model(torch.ones(2, 8)))
    (record,) = capture.all(Guards)
    x = of(record, "x", "TENSOR_MATCH")
    assert x.source == "L['x']"
    assert x.value == "f32[2, 8] stride (8, 1) cpu"
    assert x.code[0].startswith("check_tensor(L['x'], Tensor, ")
    assert "size=[2, 8], stride=[8, 1]" in x.code[0]
    assert x.location is not None
    assert x.location.file == __file__
    assert x.location.line == line_of(Scaled.forward, "x = layer(x)")
    weight = of(record, "self.layers[0].weight", "TENSOR_MATCH")
    assert weight.value == "f32[8, 8] stride (8, 1) cpu requires_grad"
    scale = of(record, "self.scale", "CONSTANT_MATCH")
    assert (scale.value, scale.code) == ("2.0", ("L['self'].scale == 2.0",))
    assert scale.location is not None
    assert scale.location.line == line_of(Scaled.forward, "self.scale")
    assert of(record, "mode", "CONSTANT_MATCH").value == "'relu'"
    assert of(record, "self.layers[0]", "TYPE_MATCH").value == "torch.nn.Linear"
    assert of(record, "grad mode", "GRAD_MODE").value == "on"
    assert of(record, "self.shift", "TENSOR_MATCH").value == "f32[8] stride (1,) cpu"
    assert __file__ in {source.file for source in capture.all(Source)}


@pytest.mark.usefixtures("torchs_profile_of_guards")
def test_cost_and_size_of_the_tree_are_torchs_own(
    capture: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[float] = []
    profile = torch_guards.profile_guard_manager

    def profiling(*args: Any, **kwargs: Any) -> float:
        measured.append(profile(*args, **kwargs))
        return measured[-1]

    monkeypatch.setattr(torch_guards, "profile_guard_manager", profiling)
    function = compiled(lambda x: x.sin())
    capture.call(lambda: function(torch.ones(2)))
    (record,) = capture.all(Guards)
    assert len(measured) == 1, "the hook must not measure a second time"
    assert record.check_us == measured[0]
    assert record.tree_nodes == 2  # the root, and x


def test_dynamic_sizes_and_symbols_in_values(capture: Capture) -> None:
    function = compiled(lambda x, y: x.sin() + y[:, :1])
    capture.call(lambda: function(torch.ones(3, 4), torch.ones(3, 5)))
    capture.call(lambda: function(torch.ones(6, 4), torch.ones(6, 5)))
    first, second = capture.all(Guards)
    assert first.dynamic == ()
    size = next(size for size in second.dynamic if size.source == "L['x'].size()[0]")
    assert (size.name, size.value, size.lower, size.upper) == ("x.size(0)", 6, 2, None)
    assert of(second, "x", "TENSOR_MATCH").value.startswith(f"f32[{size.symbol}, 4]")
    shapes = next(guard for guard in second.guards if guard.kind == "SHAPE_ENV")
    assert "2 <= L['x'].size()[0]" in shapes.code
    assert "2 <= x.size(0)" in shapes.values


def test_conditions_on_sizes_have_the_lines_that_torch_names(capture: Capture) -> None:
    def asks(x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] > 3:  # asked
            x = x + 1
        return x.sin()

    capture.call(lambda: torch.compile(asks, backend="eager", dynamic=True)(torch.ones(4, 8)))
    (record,) = capture.all(Guards)
    shapes = next(guard for guard in record.guards if guard.kind == "SHAPE_ENV")
    lines = dict(zip(shapes.code, shapes.lines, strict=True))
    asked = lines["4 <= L['x'].size()[0]"]
    assert asked is not None
    assert linecache.getline(asked.file, asked.line).strip().endswith("# asked")
    assert lines["2 <= L['x'].size()[1]"] is None, "torch's own condition"


def test_a_size_that_a_line_specialises_has_that_line(capture: Capture) -> None:
    def unrolled(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        for _ in range(x.shape[0]):  # specialises
            y = y + 1
        return y

    capture.call(lambda: torch.compile(unrolled, backend="eager", dynamic=True)(torch.ones(4, 8)))
    (record,) = capture.all(Guards)
    (size,) = record.specialised
    assert size.name == "x.size(0)"
    assert [one.name for one in record.dynamic] == ["x.size(1)"]
    assert size.location is not None
    line = linecache.getline(size.location.file, size.location.line)
    assert line.strip().endswith("# specialises")


def test_conditions_in_another_file_have_their_line(capture: Capture, tmp_path: Path) -> None:
    file = tmp_path / "sizes_of.py"
    file.write_text("def large(n):\n    if n > 3:\n        return True\n    return False\n")
    spec = importlib.util.spec_from_file_location("sizes_of", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def asks(x: torch.Tensor) -> torch.Tensor:
        return x.cos() if module.large(x.shape[0]) else x.sin()

    capture.call(lambda: torch.compile(asks, backend="eager", dynamic=True)(torch.ones(4, 8)))
    (record,) = capture.all(Guards)
    lines = [line for guard in record.guards for line in guard.lines if line is not None]
    assert [(line.file, line.line) for line in lines] == [(str(file), 2)]


def test_mark_dynamic_with_bounds(capture: Capture) -> None:
    function = compiled(torch.cos)
    x = torch.ones(4, 2)
    torch._dynamo.mark_dynamic(x, 0, min=2, max=64)
    wrapped = compiled(lambda x: x.cos() + 1)
    capture.call(lambda: (function, wrapped(x)))
    (record,) = capture.all(Guards)
    (size,) = record.dynamic
    assert (size.name, size.lower, size.upper) == ("x.size(0)", 2, 64)


def test_guards_built_twice_for_a_filter_are_recorded_once(capture: Capture) -> None:
    seen: list[int] = []

    def keep_all(entries: Any) -> list[bool]:
        seen.append(len(entries))
        return [True] * len(entries)

    model = compiled(Scaled(), options={"guard_filter_fn": keep_all})
    capture.call(lambda: model(torch.ones(2, 8)))
    (record,) = capture.all(Guards)
    assert seen == [len(record.guards)]
    scale = of(record, "self.scale", "CONSTANT_MATCH")
    assert scale.code == ("L['self'].scale == 2.0",)


class Liar:
    """Its `__repr__` raises, and so does everything that calls it."""

    kind = "relu"

    def __repr__(self) -> str:
        raise RuntimeError("no")


def test_reprs_are_not_run(capture: Capture) -> None:
    function = compiled(lambda x, config: getattr(torch, config.kind)(x))
    capture.call(lambda: function(torch.ones(2), Liar()))
    (record,) = capture.all(Guards)
    value = of(record, "config", "TYPE_MATCH").value
    assert value.endswith(".Liar")
    assert capture.all(Warned) == []


def test_long_values_are_cut(capture: Capture) -> None:
    function = compiled(lambda x, name: x.sin() if name else x.cos())
    capture.call(lambda: function(torch.ones(2), "a" * 10_000))
    (record,) = capture.all(Guards)
    assert max(len(guard.value) for guard in record.guards) <= 200


def test_closures_by_their_variables(capture: Capture) -> None:
    def times(rate: float) -> Any:
        return lambda y: y * rate

    function = compiled(lambda x, inner: inner(x))
    capture.call(lambda: function(torch.ones(2), times(3.0)))
    (record,) = capture.all(Guards)
    assert of(record, "rate of inner", "CONSTANT_MATCH").value == "3.0"


def test_an_error_of_ours_does_not_reach_torch(
    capture: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(root: Any) -> Any:
        raise ValueError("our own mistake")

    monkeypatch.setattr(guards_hook, "walk_guard_tree", broken)
    function = compiled(lambda x: x.sin())
    result = capture.call(lambda: function(torch.zeros(2)))
    assert torch.equal(result, torch.zeros(2))
    capture.call(lambda: function(torch.zeros(3)))
    assert capture.all(Guards) == []
    messages = [record.message for record in capture.all(Warned)]
    assert len(messages) == 1
    assert "our own mistake" in messages[0]


def test_nothing_while_quiet_and_nothing_left_behind() -> None:
    with record(HOOKS) as recorded:
        recorded.recorder.quiet = True
        function = compiled(lambda x: x.sin())
        function(torch.ones(2))
        assert recorded.records == []
    for name in ("__init__", "compile_check_fn"):
        method = vars(torch_guards.CheckFunctionManager)[name]
        assert method.__module__ == "torch._dynamo.guards"
        assert not hasattr(method, "__wrapped__")


def test_tree_nodes_are_those_that_torch_prints(capture: Capture) -> None:
    model = compiled(Scaled())
    capture.call(lambda: model(torch.ones(2, 8)))
    (entry,) = torch._dynamo.eval_frame._debug_get_cache_entry_list(Scaled.forward.__code__)
    printed = str(entry.guard_manager)
    tree = walk_guard_tree(entry.guard_manager.root)
    assert tree.nodes == 1 + len(re.findall(r"Manager: source=", printed))
    for texts in tree.texts.values():
        assert all(text in printed for text in texts)
    assert tree.global_state()["grad_mode"] is True


@pytest.mark.parametrize("text", ["", "none", "[1, 2]", '{"grad_mode": tr'])
def test_damaged_global_state_is_no_state(text: str) -> None:
    assert parse_global_state(text) == {}
