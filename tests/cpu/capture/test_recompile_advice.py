"""The advice against recompiles, tried: with the fix, torch compiles once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from torch._dynamo import config
from torch._dynamo.testing import CompileCounter

from compiler.capture.recompile_advice import RULES, Changed, advise

x = torch.ones(4, 8)
SETTINGS = {"automatic_dynamic_shapes": True}


def compiles(
    function: Any, values: Iterable[Any], call: Callable[[Any, Any], object], **options: Any
) -> int:
    """Graphs compiled for `call(compiled, value)` with each of the values."""
    torch._dynamo.reset()
    counter = CompileCounter()
    compiled = torch.compile(function, backend=counter, **options)
    for value in values:
        call(compiled, value)
    torch._dynamo.reset()
    return int(counter.frame_count)


def scaled(x, factor=1.0):
    return x.sin() * factor


def marked(mark: Callable[[torch.Tensor, int], object], size: int) -> torch.Tensor:
    tensor = torch.ones(size, 8)
    mark(tensor, 0)
    return tensor


def test_mark_dynamic() -> None:
    sizes = (2, 3, 4)
    mark = torch._dynamo.mark_dynamic
    assert compiles(scaled, sizes, lambda f, n: f(torch.ones(n, 8))) == 2
    assert compiles(scaled, sizes, lambda f, n: f(marked(mark, n))) == 1
    assert compiles(scaled, sizes, lambda f, n: f(torch.ones(n, 8)), dynamic=True) == 1


def test_mark_unbacked_for_sizes_zero_and_one() -> None:
    sizes = (2, 1, 5)
    mark = torch._dynamo.decorators.mark_unbacked
    assert compiles(scaled, sizes, lambda f, n: f(torch.ones(n, 8))) == 3
    assert compiles(scaled, sizes, lambda f, n: f(marked(mark, n))) == 1


def test_numbers_as_tensors_or_symbols() -> None:
    floats, integers = (1.0, 2.0, 3.0), (2, 3, 4)
    assert compiles(scaled, floats, lambda f, n: f(x, n)) == 2
    assert compiles(scaled, floats, lambda f, n: f(x, torch.tensor(n))) == 1
    assert compiles(scaled, integers, lambda f, n: f(x, n)) == 2
    assert compiles(scaled, integers, lambda f, n: f(x, n), dynamic=True) == 1


def test_dynamic_behind_a_graph_break() -> None:
    def broken(x):
        y = x.sin()
        torch._dynamo.graph_break()
        return y.cos()

    mark = torch._dynamo.mark_dynamic
    sizes = (2, 3, 4)
    assert compiles(broken, sizes, lambda f, n: f(marked(mark, n))) == 3
    assert compiles(broken, sizes, lambda f, n: f(torch.ones(n, 8)), dynamic=True) == 2


class Attribute(torch.nn.Module):
    def forward(self, x):
        return x.sin() * self.value.sum() if torch.is_tensor(self.value) else x.sin() * self.value


def setting(module: torch.nn.Module) -> Callable[[Any, Any], object]:
    def call(compiled: Any, value: Any) -> object:
        module.value = value
        return compiled(x)

    return call


def test_attributes_of_a_module() -> None:
    module = Attribute()
    assert compiles(module, (2, 3, 4), setting(module)) == 3
    with config.patch(allow_unspec_int_on_nn_module=True):
        assert compiles(module, (2, 3, 4), setting(module)) == 2
    module = Attribute()
    module.register_buffer("value", torch.tensor(1.0))
    tensors = [torch.tensor(value) for value in (1.0, 2.0, 3.0)]
    assert compiles(module, tensors, setting(module)) == 1


def test_shapes_of_buffers() -> None:
    shapes = [torch.ones(size, 8) for size in (2, 3, 4)]
    module = Attribute()
    module.register_buffer("value", shapes[0])
    assert compiles(module, shapes, setting(module)) == 3
    with config.patch(force_parameter_static_shapes=False):
        assert compiles(module, shapes, setting(module)) == 2


def test_every_rule_answers_for_anything() -> None:
    for what in RULES:
        for expected, seen in (("", ""), ("1", "2"), ("None", "function f"), ("a tensor", "int")):
            changed = Changed(what, source="L['x']", name="x", expected=expected, seen=seen)
            for advice in advise([changed], SETTINGS):
                assert advice.text
                assert advice.text[0] != " "
                assert "\n" not in advice.text + advice.code


def test_of_several_entries_a_size_that_can_be_a_symbol_decides() -> None:
    def size(expected: str) -> Changed:
        return Changed("size", "TENSOR_MATCH", "L['x']", "x.size(0)", expected, "5", 0)

    (first, *_) = advise([size("1"), size("3")], SETTINGS)
    assert first.code == "torch._dynamo.mark_dynamic(x, 0)"
    (first, *_) = advise([size("1")], SETTINGS)
    assert first.code == "torch._dynamo.decorators.mark_unbacked(x, 0)"


@pytest.mark.parametrize("what", ["other", ""])
def test_nothing_is_said_of_what_is_not_known(what: str) -> None:
    assert advise([Changed(what)], SETTINGS) == ()
    assert advise([], SETTINGS) == ()
