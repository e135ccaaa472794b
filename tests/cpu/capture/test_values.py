"""Short descriptions of values: they run none of the user's code and never raise."""

from __future__ import annotations

import enum
import functools
import types

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tcw.compiler.capture.value_words import describe_value


class Colour(enum.Enum):
    RED = 1


class Hostile:
    """Every access to it raises."""

    def __repr__(self) -> str:
        raise SystemExit("repr")

    def __str__(self) -> str:
        raise SystemExit("str")

    def __len__(self) -> int:
        raise SystemExit("len")

    def __getattribute__(self, name: str) -> object:
        raise SystemExit(name)


class HostileList(list):  # type: ignore[type-arg]
    def __iter__(self):  # type: ignore[no-untyped-def]
        raise SystemExit("iter")


def local_function() -> None: ...


LINE = local_function.__code__.co_firstlineno

CASES = [
    (torch.ones(8, 32), "f32[8, 32] stride (32, 1) cpu"),
    (torch.ones(2, dtype=torch.bfloat16), "bf16[2] stride (1,) cpu"),
    (torch.nn.Parameter(torch.ones(1)), "f32[1] stride (1,) cpu requires_grad"),
    (torch.tensor(1), "i64[] cpu"),
    (torch.ones(2, device="meta", dtype=torch.bool), "b8[2] stride (1,) meta"),
    (0.5, "0.5"),
    (True, "True"),
    (None, "None"),
    ("relu", "'relu'"),
    (Colour.RED, "Colour.RED"),
    (torch.float16, "torch.float16"),
    ([1, "a", None], "[1, 'a', None]"),
    ((1,), "(1,)"),
    ({"a": [1, 2]}, "{'a': [1, 2]}"),
    (list(range(100)), "list of 100"),
    (torch.nn.Linear(2, 2), "torch.nn.Linear"),
    (torch.nn.Linear, "class torch.nn.Linear"),
    (types, "module types"),
    (len, "function len"),
    (local_function, f"function local_function (test_values.py:{LINE})"),
    (functools.partial(len), "functools.partial"),
    (Hostile(), f"{__name__}.Hostile"),
    (HostileList([1]), f"{__name__}.HostileList"),
]


@pytest.mark.parametrize(("value", "words"), CASES, ids=[words for _, words in CASES])
def test_in_a_few_words(value: object, words: str) -> None:
    assert describe_value(value) == words


def test_hostile_values_inside_containers() -> None:
    assert describe_value([Hostile(), {1: Hostile()}]).count("Hostile") == 2


def test_a_list_that_holds_itself_ends() -> None:
    endless: list[object] = []
    endless.append(endless)
    assert describe_value(endless) == "[[[list of 1]]]"


_anything = st.recursive(
    st.none() | st.integers() | st.floats() | st.text() | st.binary() | st.booleans(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
)


@given(_anything)
def test_short_whatever_it_is(value: object) -> None:
    words = describe_value(value)
    assert 0 < len(words) <= 200


def test_large_integers_are_no_error() -> None:
    assert len(describe_value(10**10_000)) <= 200
