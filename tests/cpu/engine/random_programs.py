"""Random PyTorch programs for hypothesis: pointwise, views, reductions, mutation, joins.

A program is a list of steps on a stack of tensors; it runs eagerly and compiled, and both must
agree. Values stay small, so that f32 differences come from the order of sums alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as st

UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": torch.neg,
    "abs": torch.abs,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "exp": lambda x: torch.exp(x.clamp(-3, 3)),
    "relu": torch.relu,
    "gelu": torch.nn.functional.gelu,
    "silu": torch.nn.functional.silu,
    "square": lambda x: x * x * 0.25,
    "sqrt": lambda x: torch.sqrt(x.abs() + 0.1),
    "half": lambda x: x.to(torch.bfloat16).to(torch.float32),
    "floor": lambda x: torch.floor(x * 4) / 4,
    "where": lambda x: torch.where(x > 0.2, x, x * 0.5 - 1),
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": lambda x, y: torch.tanh(x) * y,
    "div": lambda x, y: x / (y.abs() + 1),
    "max": torch.maximum,
    "min": torch.minimum,
}
REDUCE: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda x, d: x.sum(d, keepdim=True) * 0.1,
    "mean": lambda x, d: x.mean(d, keepdim=True),
    "amax": lambda x, d: x.amax(d, keepdim=True),
    "amin": lambda x, d: x.amin(d),
    "var": lambda x, d: x.var(d, correction=0),
    "softmax": lambda x, d: torch.softmax(x, d),
    "log_softmax": lambda x, d: torch.log_softmax(x, d) * 0.2,
    "logsumexp": lambda x, d: torch.logsumexp(x, d, keepdim=True),
    "cumsum": lambda x, d: x.cumsum(d) * 0.1,
    "argmax": lambda x, d: x.argmax(d, keepdim=True).to(torch.float32) * 0.1,
    "norm": lambda x, d: _normalized(x, d),
}


@dataclass(frozen=True)
class Step:
    kind: str
    name: str
    pick: int
    """Index of a tensor in the stack, modulo its depth; `other`: the second tensor."""
    other: int
    number: int
    """A dimension, start, size, …, modulo the available number."""
    size: int


STEPS = st.builds(
    Step,
    kind=st.sampled_from(
        ["unary"] * 4
        + ["binary"] * 4
        + ["reduce"] * 3
        + ["view"] * 4
        + ["join", "mutate", "gather"]
    ),
    name=st.sampled_from(sorted({*UNARY, *BINARY, *REDUCE})),
    pick=st.integers(0, 20),
    other=st.integers(0, 20),
    number=st.integers(0, 30),
    size=st.integers(0, 30),
)
PROGRAMS = st.lists(STEPS, min_size=1, max_size=10)
SHAPES = st.lists(st.sampled_from([1, 2, 3, 5, 8, 16, 17, 33]), min_size=1, max_size=4)


def run(program: list[Step], *inputs: torch.Tensor) -> list[torch.Tensor]:
    """All tensors at the end of the program; inputs may have been mutated."""
    stack = list(inputs)
    for step in program:
        x = stack[step.pick % len(stack)]
        y = stack[step.other % len(stack)]
        stack.append(_apply(step, x, y))
    return stack[len(inputs) :]


def _apply(step: Step, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    dim = step.number % x.dim() if x.dim() else 0
    if step.kind == "unary":
        return _named(UNARY, step)(x)
    if step.kind == "binary":
        if not _broadcast(x, y):
            y = y.mean()
        return _bounded(_named(BINARY, step)(x, y))
    if step.kind == "reduce":
        return _named(REDUCE, step)(x, dim) if x.dim() else torch.tanh(x)
    if step.kind == "view":
        return _view(step, x, dim)
    if step.kind == "join":
        if not x.dim():
            return torch.stack([x, x * 2])
        parts = [
            x,
            torch.tanh(x)[tuple(slice(0, 1) if d == dim else slice(None) for d in range(x.dim()))],
        ]
        return torch.cat(parts, dim) if step.size % 2 else torch.nn.functional.pad(x, (1, 2))
    if step.kind == "mutate":
        if step.size % 2 or x.dim() == 0:
            return x.clone().mul_(0.5).add_(0.25)
        z = x.clone()
        z[..., 0] = 0.5
        return z
    if not x.dim():
        return x + 1
    index = torch.arange(x.shape[dim], device=x.device).flip(0) % max(1, x.shape[dim] - 1)
    return x.index_select(dim, index)


def _broadcast(x: torch.Tensor, y: torch.Tensor) -> bool:
    pairs = zip(reversed(x.shape), reversed(y.shape), strict=False)
    return all(a == b or a == 1 or b == 1 for a, b in pairs)


def _normalized(x: torch.Tensor, d: int) -> torch.Tensor:
    scale = torch.rsqrt(x.var(d, keepdim=True, correction=0) + 1)
    return (x - x.mean(d, keepdim=True)) * scale


def _named(table: dict[str, Any], step: Step) -> Any:
    return table.get(step.name) or table[sorted(table)[step.size % len(table)]]


def _view(step: Step, x: torch.Tensor, dim: int) -> torch.Tensor:
    if not x.dim():
        return x.unsqueeze(0)
    choice = step.size % 8
    if choice == 0:
        return x.transpose(dim, -1)
    if choice == 1:
        return x.flip(dim)
    if choice == 2:
        return x.narrow(dim, step.number % x.shape[dim], 1) if x.shape[dim] > 1 else x.squeeze(dim)
    if choice == 3:
        return x[tuple(slice(0, None, 2) if d == dim else slice(None) for d in range(x.dim()))]
    if choice == 4:
        return x.reshape(-1)
    if choice == 5:
        return x.unsqueeze(dim).expand(*x.shape[:dim], 2, *x.shape[dim:]) if x.dim() < 4 else x
    if choice == 6:
        return x.reshape(x.shape[0], -1)
    return x.contiguous().view(*reversed(x.shape))


def _bounded(x: torch.Tensor) -> torch.Tensor:
    return x.clamp(-10, 10)
