"""The advice against recompiles works: with the fix, torch compiles once."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from torch._dynamo import config
from torch._dynamo.testing import CompileCounter

from tcw.compiler.capture.recompile_advice import RULES, ChangedValue, advise
from tcw.compiler.trace.records import Advice

x = torch.ones(4, 8)
SETTINGS = {"automatic_dynamic_shapes": True}


def compiles(
    function: Any, values: Iterable[Any], call: Callable[[Any, Any], object], **options: Any
) -> int:
    """The number of graphs compiled for `call(compiled, value)` with each of the values."""
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


def divided(x):
    scale = x.max().item()
    return x / scale


def kept_as_a_tensor(x):
    scale = x.max()
    return x / scale


def test_a_learning_rate_is_given_to_the_optimizer_as_a_tensor() -> None:
    def steps(rate: float | torch.Tensor) -> int:
        parameter = torch.nn.Parameter(torch.ones(4))
        optimizer = torch.optim.AdamW([parameter], lr=rate)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5**step)

        torch._dynamo.reset()
        counter = torch._dynamo.testing.CompileCounter()
        update = torch.compile(optimizer.step, backend=counter)
        for index in range(3):
            parameter.grad = torch.full((4,), float(index))
            update()
            schedule.step()
        return counter.frame_count

    assert steps(0.1) > steps(torch.tensor(0.1)) == 1
    changed = ChangedValue(
        what="value", source="L['self'].param_groups[0]['lr']", name="self.param_groups[0]['lr']",
        expected="0.1", seen="0.05",
    )  # fmt: skip
    assert advise([changed], SETTINGS)[0].code == "lr=torch.tensor(0.1)"


def test_a_value_made_before_a_graph_break_is_kept_as_a_tensor() -> None:
    """The user has no name for it: the advice is words, at the call that made it."""
    values = [x * 2.5, x * 3.5]
    assert compiles(divided, values, lambda f, one: f(one)) == 3
    assert compiles(kept_as_a_tensor, values, lambda f, one: f(one)) == 1
    carried = ChangedValue(
        what="value", source="L['___stack0']", name="___stack0", expected="2.5", seen="3.5",
        resumed=True,
    )  # fmt: skip
    first = advise([carried], SETTINGS)[0]
    assert first.code == ""
    assert "before the graph break" in first.text
    argument = replace(carried, source="L['rate']", name="rate")
    assert advise([argument], SETTINGS)[0].code == "rate = torch.tensor(rate)"


def test_one_type_of_sequence_and_one_layout() -> None:
    def added(x, items):
        return x + items[0]

    items = ((x,), [x])
    assert compiles(added, items, lambda f, one: f(x, one)) == 2
    assert compiles(added, items, lambda f, one: f(x, tuple(one))) == 1
    layouts = (x, torch.ones(8, 4).t())
    assert compiles(scaled, layouts, lambda f, one: f(one)) == 2
    assert compiles(scaled, layouts, lambda f, one: f(one.contiguous())) == 1


def test_one_number_of_dimensions() -> None:
    (down,) = advise([ChangedValue("rank", subject="y", expected="2", seen="4")], SETTINGS)
    (up,) = advise([ChangedValue("rank", subject="y", expected="3", seen="2")], SETTINGS)
    (no,) = advise([ChangedValue("rank", subject="y", expected="4", seen="2")], SETTINGS)
    for advice, given, wanted in ((down, (2, 3, 4, 5), 2), (up, (4, 5), 3)):
        names = {"y": torch.ones(given)}
        exec(advice.code, names)
        assert names["y"].dim() == wanted
    assert no.code == ""


def test_a_value_behind_a_graph_break_is_changed_before_it() -> None:
    """Or, if it is an argument, before the call."""

    def laid_out(fix: bool) -> Callable[..., torch.Tensor]:
        def broken(x):
            y = x.sin()
            if fix:
                y = y.contiguous()
            torch._dynamo.graph_break()
            return y.cos()

        return broken

    layouts = (x, torch.ones(8, 4).t())
    assert compiles(laid_out(False), layouts, lambda f, one: f(one)) == 4
    assert compiles(laid_out(True), layouts, lambda f, one: f(one)) == 3
    passed = ChangedValue("stride", source="L['y']", subject="y", resumed=True)
    (advice,) = advise([replace(passed, made=True)], SETTINGS)
    assert (advice.code, advice.text[:31]) == (
        "y = y.contiguous()",
        "Do it before the graph break: t",
    )
    assert advise([passed], SETTINGS)[0].text.startswith("Do it before every call")
    for what in ("dtype", "device", "requires_grad", "size", "value"):
        made = replace(passed, what=what, expected="1.0", seen="2.0", name="y", made=True)
        assert "call" not in advise([made], SETTINGS)[0].text.replace("caller", "").replace(
            "in every call", ""
        )


def test_an_argument_that_passes_a_graph_break_can_be_marked() -> None:
    def broken(x):
        total = x.sin().sum()
        torch._dynamo.graph_break()
        return x.cos() + total

    mark = torch._dynamo.mark_dynamic
    assert compiles(broken, (2, 3, 4), lambda f, n: f(torch.ones(n, 8))) == 4
    assert compiles(broken, (2, 3, 4), lambda f, n: f(marked(mark, n))) == 2
    changed = ChangedValue("size", "TENSOR_MATCH", "L['x']", "x", "x.size(0)", "2", "3", 0)
    first = advise([replace(changed, resumed=True)], SETTINGS)[0]
    assert first.code == "torch._dynamo.mark_dynamic(x, 0)"
    first = advise([replace(changed, resumed=True, made=True)], SETTINGS)[0]
    assert first.code == "torch.compile(model, dynamic=True)"


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
    (advice,) = advise([ChangedValue("value", source="L['self'].value", expected="1.0")], SETTINGS)
    module = Attribute()
    exec(advice.code, {"self": module, "torch": torch})

    def fill(compiled: Any, value: float) -> object:
        module.value.fill_(value)
        return compiled(x)

    assert compiles(module, (1.0, 2.0, 3.0), fill) == 1


@pytest.mark.parametrize(("size", "advice"), [(12, "Keep to sizes with"), (1, "Pad the")])
def test_a_bound_that_the_code_sets_is_not_taken_for_torchs_own(size: int, advice: str) -> None:
    """Of `2 <= size <= 10`, torch adds the lower bound to every dynamic size."""
    changed = ChangedValue(what="shape", guard="2 <= x.size(0) <= 10", seen=f"x.size(0) = {size}")
    assert advise([changed], {})[0].text.startswith(advice)


def test_shapes_of_buffers() -> None:
    shapes = [torch.ones(size, 8) for size in (2, 3, 4)]
    module = Attribute()
    module.register_buffer("value", shapes[0])
    assert compiles(module, shapes, setting(module)) == 3
    with config.patch(force_parameter_static_shapes=False):
        assert compiles(module, shapes, setting(module)) == 2


VALUES = (
    ("", ""), ("1", "2"), ("1.5", "2.5"), ("None", "function f"), ("a tensor", "int"),
    ("tuple", "list"), ("cpu", "meta"), ("True", "False"), ("object", "another object"),
)  # fmt: skip


@pytest.mark.parametrize("what", RULES)
def test_every_rule_answers_for_anything_in_one_style(what: str) -> None:
    """A sentence with a capital letter and without a full stop, at most two lines in `explain`."""
    sources = ("L['x']", "L['self'].rate", "L['self']._buffers['shift']", "G['SCALE']")
    for source, passed, (expected, seen) in product(sources, ("", "*", "**"), VALUES):
        changed = ChangedValue(
            what, source=source, subject="hidden_states", name="hidden_states",
            expected=expected, seen=seen, index=0, passed=passed,
        )  # fmt: skip
        for resumed, made in product((False, True), repeat=2):
            given = replace(changed, resumed=resumed, made=made)
            for advice in advise([given], SETTINGS):
                well_written(advice)


def well_written(advice: Advice) -> None:
    assert re.match(r"[A-Z]", advice.text), advice.text
    assert not advice.text.endswith(".")
    assert "\n" not in advice.text + advice.code
    assert len(textwrap.wrap(advice.text, 100 - 18)) <= 2, advice.text


def test_a_list_of_the_module_that_grows_is_no_loop() -> None:
    def length(source: str) -> Advice:
        changed = ChangedValue(
            "length", source=source, subject="self.log", name="self.log", expected="0", seen="1"
        )
        (found,) = advise([changed], SETTINGS)
        well_written(found)
        return found

    assert length("L['self'].log").text.startswith("Change self.log outside the compiled code")


def test_of_several_entries_a_size_that_can_be_a_symbol_decides() -> None:
    def size(expected: str) -> ChangedValue:
        return ChangedValue("size", "TENSOR_MATCH", "L['x']", "x", "x.size(0)", expected, "5", 0)

    (first, *_) = advise([size("1"), size("3")], SETTINGS)
    assert first.code == "torch._dynamo.mark_dynamic(x, 0)"
    (first, *_) = advise([size("1")], SETTINGS)
    assert first.code == "torch._dynamo.decorators.mark_unbacked(x, 0)"


@pytest.mark.parametrize("what", ["other", ""])
def test_nothing_is_said_of_what_is_not_known(what: str) -> None:
    assert advise([ChangedValue(what)], SETTINGS) == ()
    assert advise([], SETTINGS) == ()


def test_a_value_on_which_the_code_branches_cannot_be_a_tensor() -> None:
    changed = ChangedValue(
        what="value", source="L['opts']['gain']", name="opts['gain']", expected="2.0", seen="3.0",
        line='        if opts and opts["gain"]:',
    )  # fmt: skip
    (branch,) = advise([changed], SETTINGS)
    assert branch.text.startswith("Call once with each value during warm-up")
    assert not branch.code
    count = ChangedValue("value", source="L['n']", name="n", expected="2", seen="3")
    loop = replace(count, line="for i in range(n):")
    assert advise([loop], SETTINGS) != advise([count], SETTINGS)
    assert not advise([loop], SETTINGS)[0].code
    used = replace(changed, line='        x = x * opts["gain"]')
    assert advise([used], SETTINGS)[0].code == "opts['gain'] = torch.tensor(opts['gain'])"


class Remembering(torch.nn.Module):
    """It makes a tensor in its first call and keeps it, by device."""

    def __init__(self) -> None:
        super().__init__()
        self.bias: dict[str, torch.Tensor] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if str(x.device) not in self.bias:
            self.bias[str(x.device)] = torch.ones(8)
        return x + self.bias[str(x.device)]


def test_a_dictionary_that_the_first_call_fills_is_filled_before_it() -> None:
    filled = Remembering()
    filled(x)
    assert compiles(Remembering(), (x, x), lambda f, one: f(one)) == 2
    assert compiles(filled, (x, x), lambda f, one: f(one)) == 1
    changed = ChangedValue(
        what="keys", source="L['self']._modules['0'].bias", subject="self[0].bias",
        expected="False", seen="True",
    )  # fmt: skip
    (advice,) = advise([changed], SETTINGS)
    assert advice.text.startswith("Fill self[0].bias before the first compiled call")
    passed = replace(changed, source="L['bias']", subject="bias")
    (advice,) = advise([passed], SETTINGS)
    assert advice.text.startswith("Give bias the same keys")


def test_an_attribute_that_the_first_call_adds_is_set_before_it() -> None:
    class Lazy(torch.nn.Module):
        def forward(self, x):
            if not hasattr(self, "scale"):
                self.scale = x.mean()
            return x - self.scale

    class Eager(Lazy):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.zeros(())

    assert compiles(Lazy(), [x, x, x], lambda f, one: f(one)) == 2
    assert compiles(Eager(), [x, x, x], lambda f, one: f(one)) == 1
    changed = ChangedValue(
        "attribute", name="hasattr(self, 'scale')", expected="False", seen="True"
    )
    assert advise([changed], SETTINGS)[0].text.startswith("Set the attribute before the first call")
