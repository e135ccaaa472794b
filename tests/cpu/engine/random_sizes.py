"""Random programs whose sizes, starts and numbers are expressions of a symbolic size.

Such an expression, like `(n - 3) // 2`, may be negative, 0 or 1 for a size at which the program is
called, but not for the one that it is compiled for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from hypothesis import strategies as st
from torch import Tensor

Number = Any
"""An int; a symbolic one while the program is traced."""


@dataclass(frozen=True)
class Written:
    """An expression of the size `n`, as Python text."""

    text: str

    def __repr__(self) -> str:
        return self.text

    def of(self, n: Number) -> Number:
        return eval(self.text, {"n": n, "min": min, "max": max})


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    some = st.integers(2, 4)
    return st.one_of(
        st.builds("({} // {})".format, inner, some),
        st.builds("({} % {})".format, inner, some),
        st.builds("({} + {})".format, inner, st.integers(-6, 6)),
        st.builds("({} * {})".format, inner, st.sampled_from([-2, -1, 2, 3])),
        st.builds("({} - {})".format, inner, inner),
        st.builds("min({}, {})".format, inner, st.integers(-2, 4)),
        st.builds("max({}, {})".format, inner, st.integers(-2, 4)),
    )


EXPRESSIONS = st.builds(Written, st.recursive(st.just("n"), _larger, max_leaves=3))

Operation = Callable[[Tensor, Number, Number], Tensor]

OPERATIONS: dict[str, Operation] = {
    "slice": lambda x, a, b: x[a:b],
    "last": lambda x, a, b: x[..., a:].sin(),
    "steps": lambda x, a, b: x[a:b:2],
    "narrow": lambda x, a, b: x.narrow(0, a, b),
    "pad": lambda x, a, b: F.pad(x, (a, b)),
    "pad with a number": lambda x, a, b: F.pad(x, (a, 1), value=0.5) * 2,
    "unfold": lambda x, a, b: x.unfold(0, a, 2).cos(),
    "arange": lambda x, a, b: x[:1] + torch.arange(a, b),
    "backwards": lambda x, a, b: x.sum() * torch.arange(a, b, -2),
    "full": lambda x, a, b: x.mean() + torch.full((a,), b, dtype=x.dtype),
    "number": lambda x, a, b: x * a + b,
    "quotient": lambda x, a, b: x * (a // 2) - abs(b) % 3,
    "roll": lambda x, a, b: x.roll(a, 0).exp(),
    "positions": lambda x, a, b: torch.where(torch.arange(x.shape[-1]) < a, x, x.tanh()),
    "triangle": lambda x, a, b: (x.unsqueeze(0) * x.flip(0).unsqueeze(1)).tril(a).sum(0),
    "diagonal": lambda x, a, b: (x.reshape(-1).unsqueeze(0) * x.reshape(-1, 1)).diagonal(a),
    "joined": lambda x, a, b: torch.cat([x[:a], x[b:].neg()]),
    "split": lambda x, a, b: torch.cat([part.sin() for part in x.split([a, x.shape[0] - a])][::-1]),
    "clamp": lambda x, a, b: x.clamp(min=a).clamp(max=b),
    "select": lambda x, a, b: x[a].sum() * x[b],
    "filled": lambda x, a, b: torch.slice_scatter(x, x[a:b] * 2 + 1, 0, a, b),
    "new": lambda x, a, b: torch.cat([x, x.new_ones(max(a, 0), *x.shape[1:])]).cumsum(0),
}


@dataclass(frozen=True)
class SizeStep:
    name: str
    pick: int
    a: Written
    b: Written


STEPS = st.builds(
    SizeStep,
    name=st.sampled_from(sorted(OPERATIONS)),
    pick=st.integers(0, 5),
    a=EXPRESSIONS,
    b=EXPRESSIONS,
)
PROGRAMS = st.lists(STEPS, min_size=1, max_size=4)
SIZES = st.lists(st.integers(0, 9), min_size=2, max_size=4, unique=True)


def run(program: list[SizeStep], x: Tensor) -> list[Tensor]:
    """The result of each step. A step takes an earlier result."""
    n = x.shape[0]
    stack = [x]
    for step in program:
        taken = stack[step.pick % len(stack)]
        stack.append(OPERATIONS[step.name](taken, step.a.of(n), step.b.of(n)))
    return stack[1:]
