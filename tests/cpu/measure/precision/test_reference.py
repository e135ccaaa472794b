from __future__ import annotations

import dataclasses
from collections import OrderedDict, namedtuple
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tcw.compiler.measure.calls.leaves import leaves
from tcw.compiler.measure.precision.judge import tensor_error
from tcw.compiler.measure.precision.reference import OutputComparison
from tcw.compiler.trace.records import Numerics

INF, NAN = float("inf"), float("nan")


def compared(ours: Any, theirs: Any) -> Numerics:
    comparison = OutputComparison()
    comparison.add(1, list(leaves(ours)), list(leaves(theirs)))
    return comparison.record()


@dataclasses.dataclass
class Pair:
    first: torch.Tensor
    rest: list[Any]


class Output(OrderedDict):  # type: ignore[type-arg]
    """As transformers' ModelOutput."""


Point = namedtuple("Point", "x y")


def test_paths_of_leaves() -> None:
    t = torch.ones(1)
    value = (t, [t, {"a": t, 3: 4}], Pair(t, [None]), Output(logits=t), Point(t, "s"))
    assert [path for path, _ in leaves(value)] == [
        "out[0]",
        "out[1][0]",
        "out[1][1]['a']",
        "out[1][1][3]",
        "out[2].first",
        "out[2].rest[0]",
        "out[3].logits",
        "out[4].x",
        "out[4].y",
    ]


def test_equal() -> None:
    found = compared((torch.ones(3), 4, "a", None), (torch.ones(3), 4, "a", None))
    assert (found.compared, found.max_abs, found.max_rel) == (1, 0.0, 0.0)
    assert found.equal
    assert found.within
    assert found.worst == ()


def test_the_worst_is_named() -> None:
    ours = {"a": torch.tensor([1.0, 2.0]), "b": torch.tensor([100.0])}
    theirs = {"a": torch.tensor([1.0, 2.5]), "b": torch.tensor([100.25])}
    found = compared(ours, theirs)
    assert found.max_abs == 0.5
    assert found.max_rel == pytest.approx(0.2)
    assert [error.path for error in found.worst] == ["out['a']", "out['b']"]
    assert found.within is False
    assert not found.equal


def test_rounding_is_within() -> None:
    x = torch.rand(100) + 1
    found = compared(x, x * (1 + 1e-7))
    assert found.within
    assert not found.equal or torch.equal(x, x * (1 + 1e-7))


@pytest.mark.parametrize(
    ("ours", "theirs", "note", "largest"),
    [
        ([NAN, 1.0], [NAN, 1.0], "", 0.0),
        ([INF, 1.0], [INF, 1.5], "", 0.5),
        ([NAN, 1.0], [2.0, 1.5], "nan in compiled only", 0.5),
        ([2.0], [NAN], "nan in eager only", 0.0),
        ([INF], [1.0], "inf in compiled only", 0.0),
        ([-INF], [INF], "infinities of opposite sign", 0.0),
        ([0.0], [0.0], "", 0.0),
    ],
)
def test_odd_values(ours: list[float], theirs: list[float], note: str, largest: float) -> None:
    a, b = torch.tensor(ours), torch.tensor(theirs)
    max_abs, _, found = tensor_error(a, b)
    assert (max_abs, found) == (largest, note)
    if note:
        assert compared(a, b).within is False
        assert compared(a, b).worst[0].note == note


@pytest.mark.parametrize(
    ("ours", "theirs", "note"),
    [
        (torch.ones(2), torch.ones(3), "shapes differ: (2,), eager (3,)"),
        (torch.ones(2), torch.ones(2).double(), "dtypes differ: float32, eager float64"),
        (torch.ones(2), 1.0, "a tensor on one side only"),
        (1, 2, "values differ: 1, eager 2"),
        (1, True, "values differ: 1, eager True"),
        ("a", "b", "values differ"),
        (1 << 70, 2, "values differ"),
        (1.0, 1, "values differ"),
        (INF, 1.0, "inf in compiled only"),
        ((1, 2), (1,), "returned by the compiled model only"),
        ((1,), (1, 2), "returned by eager only"),
    ],
)  # fmt: skip
def test_what_cannot_be_close(ours: Any, theirs: Any, note: str) -> None:
    found = compared(ours, theirs)
    assert found.within is False
    assert not found.equal
    assert note in [error.note for error in found.worst]


def test_a_float_may_differ_as_the_float32_that_it_comes_from() -> None:
    """`loss.item()` is rounded as the loss is."""
    found = compared((3.0000002, 0.5), (3.0, 0.5))
    assert found.within
    assert found.max_abs == pytest.approx(2e-7)
    assert not found.equal
    assert compared(3.01, 3.0).within is False


@pytest.mark.parametrize(
    "dtype",
    [torch.int64, torch.uint8, torch.bool, torch.bfloat16, torch.float16, torch.complex64],
)
def test_dtypes(dtype: torch.dtype) -> None:
    a, b = torch.tensor([0, 1, 1]).to(dtype), torch.tensor([0, 1, 0]).to(dtype)
    assert compared(a, a.clone()).equal
    found = compared(a, b)
    assert found.max_abs == 1.0
    assert found.within is False


def test_other_layouts_and_empty_tensors() -> None:
    sparse = torch.eye(3).to_sparse()
    assert compared(sparse, torch.eye(3).to_sparse()).equal
    assert compared(torch.empty(0, 3), torch.empty(0, 3)).equal
    assert compared((), ()).max_abs is None


def test_an_eq_that_raises_proves_nothing() -> None:
    class Raises(str):
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            raise ValueError

        __ne__ = __eq__

    assert compared(Raises(), Raises()).worst == ()


numbers = st.floats(allow_nan=True, allow_infinity=True, width=32)


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8))
def test_the_error_is_never_odd_and_zero_only_for_equal(pairs: list[tuple[float, float]]) -> None:
    a, b = (torch.tensor([pair[side] for pair in pairs]) for side in (0, 1))
    max_abs, max_rel, note = tensor_error(a, b)
    assert 0 <= max_abs < INF
    assert 0 <= max_rel < INF
    same = bool(((a == b) | (a.isnan() & b.isnan())).all())
    assert (max_abs == 0 and not note) == same
