"""Sizes: integers, or polynomials with integer coefficients in the symbols of a dynamic shape.

Two sizes are equal only if they are structurally equal. A division has a result only if it is exact
for every value of the symbols. Torch's `s0//2` and `Max(1, s0)` become symbols of their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Term = tuple[tuple[str, ...], int]
"""Sorted symbols and a coefficient: (("s0", "s1"), 4) is 4*s0*s1."""


@dataclass(frozen=True, slots=True)
class Symbolic:
    """A sum of terms, sorted by symbols. Never a plain number."""

    terms: tuple[Term, ...]

    def __str__(self) -> str:
        return " + ".join(_term_text(symbols, factor) for symbols, factor in self.terms)

    __repr__ = __str__


Size = int | Symbolic


def symbol(name: str) -> Symbolic:
    """The size that `name` stands for."""
    return Symbolic((((name,), 1),))


def terms(size: Size) -> tuple[Term, ...]:
    if isinstance(size, int):
        return (((), size),) if size else ()
    return size.terms


def from_terms(items: Iterable[Term]) -> Size:
    total: dict[tuple[str, ...], int] = {}
    for symbols, factor in items:
        total[symbols] = total.get(symbols, 0) + factor
    left = tuple(sorted((item for item in total.items() if item[1]), key=_order))
    if not left:
        return 0
    if len(left) == 1 and not left[0][0]:
        return left[0][1]
    return Symbolic(left)


def _order(term: Term) -> tuple[int, tuple[str, ...]]:
    return -len(term[0]), term[0]


def add(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return from_terms((*terms(a), *terms(b)))


def negate(a: Size) -> Size:
    return multiply(a, -1)


def subtract(a: Size, b: Size) -> Size:
    return add(a, negate(b))


def multiply(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    return from_terms(
        (tuple(sorted((*left, *right))), x * y) for left, x in terms(a) for right, y in terms(b)
    )


def product(sizes: Iterable[Size]) -> Size:
    total: Size = 1
    for size in sizes:
        total = multiply(total, size)
    return total


def divide(a: Size, b: Size) -> Size | None:
    """a / b if the division is exact for every value of the symbols, else None."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b and a % b == 0 else None
    divisor = terms(b)
    if not divisor:
        return None
    lead_symbols, lead_factor = divisor[0]
    rest: Size = a
    quotient: list[Term] = []
    for _ in range(len(terms(a)) + 8):
        if rest == 0:
            return from_terms(quotient)
        symbols, factor = terms(rest)[0]
        left = list(symbols)
        for name in lead_symbols:
            if name not in left:
                return None
            left.remove(name)
        if factor % lead_factor:
            return None
        step: Term = (tuple(left), factor // lead_factor)
        quotient.append(step)
        rest = subtract(rest, multiply(b, from_terms([step])))
    return None


def at_least(a: Size, b: Size) -> bool:
    """Whether a >= b certainly holds. Every symbol is assumed to be at least 0."""
    difference = subtract(a, b)
    return all(factor >= 0 for _, factor in terms(difference))


def evaluate(size: Size, values: Mapping[str, int]) -> int:
    """The size for these values of its symbols."""
    if isinstance(size, int):
        return size
    total = 0
    for symbols, factor in size.terms:
        for name in symbols:
            factor *= values[name]
        total += factor
    return total


FUNCTIONS = {
    "math": math,
    "float": float,
    "Max": max,
    "Min": min,
    "max": max,
    "min": min,
    "abs": abs,
    "Mod": lambda a, b: a % b,
}
"""The names that a symbol's Python expression may use."""


def symbol_values(
    passed: Mapping[str, int],
    derived: Mapping[str, str],
    tensors: Mapping[str, object] | None = None,
) -> dict[str, int]:
    """The value of each symbol: the `passed` ones, then the `derived` ones in order.

    `derived` maps a name to a Python expression of earlier symbols or of `tensors`, as in
    `Graph.symbols`. Raises NameError if an expression refers to an unknown name.
    """
    values = dict(passed)
    for name, text in derived.items():
        known = {"__builtins__": {}, **FUNCTIONS, **(tensors or {})}
        values[name] = int(eval(text, known, values))
    return values


def symbols_of(size: Size) -> frozenset[str]:
    return frozenset(name for symbols, _ in terms(size) for name in symbols)


def c_expression(size: Size) -> str:
    """C text that can follow any operator. Symbols become identifiers unchanged."""
    if isinstance(size, int):
        return f"{size}L" if abs(size) >= 1 << 31 else str(size)
    text = " + ".join(_term_text(symbols, factor) for symbols, factor in size.terms)
    return text if text.isidentifier() else f"({text})"


def _term_text(symbols: tuple[str, ...], factor: int) -> str:
    if not symbols:
        return str(factor)
    names = "*".join(symbols)
    return names if factor == 1 else f"-{names}" if factor == -1 else f"{factor}*{names}"
