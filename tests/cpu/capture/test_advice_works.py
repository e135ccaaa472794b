"""The code of our advice, pasted and run: it removes the break and keeps the values."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch._dynamo import config
from torch._dynamo.testing import CompileCounter

from tcw.compiler.trace.records import Graph, GraphBreak
from tests.cpu.capture import breaking
from tests.cpu.capture.compiled import compiled

pytestmark = pytest.mark.filterwarnings("ignore")

INPUTS = [torch.ones(2, 2), torch.full((2, 2), 9.0), -torch.ones(2, 2), torch.randn(2, 2)]


def pasted(function: Any, line: int, lines: int, code: str, folder: Any) -> Callable[..., Any]:
    """`function` with `lines` lines, from `line` on, replaced by `code`."""
    source, first = inspect.getsourcelines(function)
    start = line - first
    indent = " " * (len(source[start]) - len(source[start].lstrip()))
    replaced = [*source[:start], textwrap.indent(code, indent) + "\n", *source[start + lines :]]
    file = folder / f"{function.__name__}.py"
    file.write_text("".join(replaced))
    names = dict(vars(breaking))
    exec(compile(file.read_text(), str(file), "exec"), names)
    changed: Callable[..., Any] = names[function.__name__]
    return changed


def advice(function: Any, index: int) -> tuple[int, str]:
    item = compiled(function, (INPUTS[0],)).recording.all(GraphBreak)[0]
    assert item.advice[index].by == "tcw"
    return item.location.line, item.advice[index].code


@pytest.mark.parametrize(
    ("function", "index", "lines"),
    [
        (breaking.branch_clamp, 0, 2),
        (breaking.branch_clamp, 1, 2),
        (breaking.branch_assign, 0, 4),
        (breaking.branch_assign, 1, 4),
        (breaking.branch_on_item, 0, 2),
        (breaking.branch_on_item, 1, 2),
        (breaking.branch_on_float, 0, 1),
        (breaking.branch_return, 0, 4),
        (breaking.branch_return, 1, 4),
        (breaking.branch_expression, 0, 1),
        (breaking.branch_raise, 0, 2),
        (breaking.square_root, 0, 1),
        (breaking.item, 0, 1),
        (breaking.item, 1, 1),
        (breaking.prints, 0, 1),
        (breaking.over_lines, 0, 4),
        (breaking.branch_on_size, 0, 4),
        (breaking.branch_on_capture, 0, 6),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_code_to_paste(function: Any, index: int, lines: int, tmp_path: Any) -> None:
    line, code = advice(function, index)
    setting, _, rest = code.partition("\n") if "config." in code else ("", "", code)
    changed = pasted(function, line, lines, rest, tmp_path)
    before = {"reorderable_logging_functions": set(), "capture_dynamic_output_shape_ops": False}
    with config.patch(before):
        exec(setting, dict(vars(breaking)))
        _compiles_whole_and_right(changed, function)


def _compiles_whole_and_right(changed: Any, function: Any) -> None:
    for x in INPUTS:
        torch.testing.assert_close(changed(x), function(x), rtol=1e-6, atol=0)
    result = compiled(changed, *((x,) for x in INPUTS), fullgraph=True)
    assert result.error is None
    torch.testing.assert_close(result.result, function(INPUTS[-1]), rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    ("function", "index", "setting"),
    [
        (breaking.prints_in_loop, 0, "reorderable_logging_functions"),
        (breaking.warns, 0, "reorderable_logging_functions"),
        (breaking.logs, 0, "ignore_logging_functions"),
        (breaking.logs_module, 0, "ignore_logging_functions"),
        (breaking.item, 2, "capture_scalar_outputs"),
        (breaking.to_int, 0, "capture_scalar_outputs"),
        (breaking.nonzero, 0, "capture_dynamic_output_shape_ops"),
        (breaking.masked, 1, "capture_dynamic_output_shape_ops"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_settings(function: Any, index: int, setting: str) -> None:
    _, code = advice(function, index)
    assert code.startswith(f"torch._dynamo.config.{setting}")
    before = getattr(config, setting)
    with config.patch({setting: set() if isinstance(before, set) else before}):
        exec(code, dict(vars(breaking)))
        result = compiled(function, (INPUTS[0],))
    assert result.error is None
    assert result.recording.all(GraphBreak) == []


def test_a_captured_size_decides_with_cond_or_is_checked(tmp_path: Any) -> None:
    function = breaking.branch_on_capture
    lines, first = inspect.getsourcelines(function)
    line = first + next(i for i, one in enumerate(lines) if "if not" in one)
    with config.patch(capture_dynamic_output_shape_ops=True):
        (item,) = compiled(function, (INPUTS[0],)).recording.all(GraphBreak)
        assert item.location.line == line
        decides, checked = item.advice
        changed = pasted(function, line, 4, decides.code, tmp_path)
        _compiles_whole_and_right(changed, function)
        changed = pasted(function, line, 0, checked.code, tmp_path)
        result = compiled(changed, (INPUTS[0],), fullgraph=True)
    assert result.error is None
    torch.testing.assert_close(result.result, function(INPUTS[0]))


@pytest.fixture
def one_rank(tmp_path: Any) -> Iterator[None]:
    """A process group that consists of this process."""
    store = f"file://{tmp_path / 'store'}"
    torch.distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


def test_a_module_is_compiled_before_data_parallel_wraps_it(one_rank: None) -> None:
    layer = torch.nn.Linear(2, 2)
    wrapped = torch.nn.parallel.DistributedDataParallel(layer)
    found = compiled(wrapped, (INPUTS[0],)).recording
    assert not [graph for graph in found.all(Graph) if graph.kind == "captured"]
    advised = [graph_break.advice[0] for graph_break in found.all(GraphBreak)]
    assert advised
    assert {one.code for one in advised} == {
        "model = DistributedDataParallel(torch.compile(module))"
    }
    counter = CompileCounter()
    inside = torch.nn.parallel.DistributedDataParallel(torch.compile(layer, backend=counter))
    torch.testing.assert_close(inside(INPUTS[0]), layer(INPUTS[0]))
    assert counter.frame_count == 1
