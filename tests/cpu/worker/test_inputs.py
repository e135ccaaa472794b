"""Input sets: the forms they are written in, the copies that runs get, the tensors drawn."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest
import torch
import torch._dynamo

from tcw.compiler.control.user_error import UserError
from tcw.compiler.measure.calls.inputs import InputSet
from tcw.workbench.worker.inputs import (
    generated,
    input_sets,
    mark_dynamic,
    named_arguments,
    parameters,
)
from tcw.workbench.worker.specification import parse_inputs

X = torch.ones(2, 3)


@pytest.mark.parametrize(
    ("value", "positional", "keyword"),
    [
        ((X, 1), 2, 0),
        ({"x": X}, 0, 1),
        (((X,), {"y": 1}), 1, 1),
        ((), 0, 0),
        (((X,), X), 2, 0),
        (lambda: (X,), 1, 0),
        (lambda: [(X,)], 1, 0),
    ],
)
def test_forms(value: Any, positional: int, keyword: int) -> None:
    (input_set,) = input_sets(value, __file__)
    assert (len(input_set.positional), len(input_set.keyword)) == (positional, keyword)


@pytest.mark.parametrize("value", [X, [X], [], 3, None, {1: X}, [(X,), 4], torch.nn.Linear])
def test_other_forms_are_refused_with_words(value: Any) -> None:
    with pytest.raises(UserError, match="example_inputs") as caught:
        input_sets(value, __file__)
    assert caught.value.doing == "reading inputs"


def test_copies_keep_strides_storage_marks_and_values() -> None:
    base = torch.arange(12.0).reshape(3, 4)
    view, turned = base[1:], base.t()
    marked = torch.ones(5)
    torch._dynamo.mark_dynamic(marked, 0)
    weight = torch.ones(3, requires_grad=True)
    made = weight * 2
    lock = threading.Lock()
    given = InputSet((base, view, turned, marked), {"w": weight, "made": made, "rest": [lock, 1]})
    positional, keyword = given.fresh()
    assert torch.equal(positional[0], base)
    assert positional[0].data_ptr() != base.data_ptr()
    assert positional[2].stride() == turned.stride()
    positional[0][1, 0] = 100.0
    assert positional[1][0, 0] == 100.0
    assert positional[2][0, 1] == 100.0
    assert base[1, 0] == 4.0
    assert positional[3]._dynamo_dynamic_indices == {0}
    assert keyword["w"].requires_grad
    assert keyword["w"].is_leaf
    assert keyword["made"].requires_grad
    assert keyword["made"].is_leaf
    assert keyword["rest"] == [lock, 1]


def test_an_expanded_tensor_stays_expanded() -> None:
    (copied,), _ = InputSet((torch.ones(1).expand(1000),)).fresh()
    assert copied.stride() == (0,)
    assert copied.untyped_storage().nbytes() == 4


def test_drawn_tensors_are_the_same_each_time_and_leave_the_generator_alone() -> None:
    texts = ["f32[4,5], i64[100](3,7), b8[9], bf16[3](-1,1), c64[2], f64[50](2)", "u8[6]"]
    before = torch.get_rng_state()
    first, second = (generated([parse_inputs(text) for text in texts]) for _ in range(2))
    assert torch.equal(before, torch.get_rng_state())
    for one, two in zip(first, second, strict=True):
        for a, b in zip(one.positional, two.positional, strict=True):
            assert torch.equal(a, b)
    floats, indices, flags, narrow, complexes, bounded = first[0].positional
    assert (floats.dtype, floats.shape) == (torch.float32, (4, 5))
    assert set(indices.tolist()) == {3, 4, 5, 6}
    assert flags.dtype is torch.bool
    assert narrow.dtype is torch.bfloat16
    assert complexes.dtype is torch.complex64
    assert 0 <= bounded.min() < 0.5 < 1.5 < bounded.max() < 2
    assert set(second[1].positional[0].tolist()) <= {0, 1}


def test_names_of_arguments() -> None:
    def model(a, /, b, *others, c=1, **rest):
        return a

    named = named_arguments(parameters(model), (1, 2, 3, 4), {"c": 5, "d": 6})
    assert named == {"a": 1, "b": 2, "others[0]": 3, "others[1]": 4, "c": 5, "d": 6}
    assert named_arguments(None, (1,), {}) == {"args[0]": 1}


@pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations are evaluated at once")
def test_an_annotation_that_only_a_type_checker_imports() -> None:
    names: dict[str, Any] = {}
    source = "def forward(x: Tensor, scale: int = 2): pass"
    exec(compile(source, "model.py", "exec", dont_inherit=True), names)
    found = parameters(names["forward"])
    assert found is not None
    assert list(found.parameters) == ["x", "scale"]


def test_marks_count_from_the_end_too() -> None:
    x = torch.ones(2, 3)
    mark_dynamic(("x:-1",), {"x": x})
    assert x._dynamo_dynamic_indices == {1}


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("x", "expected NAME:DIM"),
        ("x:y", "expected NAME:DIM"),
        ("z:0", "no argument 'z'"),
        ("x:2", "x has 2 dimensions (2, 3)"),
        ("x:-3", "x has 2 dimensions (2, 3)"),
        ("scale:0", "scale is a float, not a tensor"),
    ],
)
def test_marks_that_fit_nothing(mark: str, words: str) -> None:
    with pytest.raises(UserError) as caught:
        mark_dynamic((mark,), {"x": torch.ones(2, 3), "scale": 2.0})
    assert caught.value.message.startswith("--mark-dynamic")
    assert words in caught.value.message
