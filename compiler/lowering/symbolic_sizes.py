"""Symbolic sizes of an ATen graph: torch's SymInts (sympy inside) become `Size`s.

Each distinct expression is translated once per graph; plain integers never reach sympy. No guard is
ever installed: nothing here compares or evaluates a SymInt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any

import sympy
import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.utils._sympy.printers import PythonPrinter

from tcw.compiler.loops.graph import Graph
from tcw.compiler.loops.layouts import Shape
from tcw.compiler.loops.sizes import Size, add, multiply, product, subtract, symbol
from tcw.compiler.lowering.registry import Unsupported


class _Printer(PythonPrinter):  # type: ignore[misc]
    def _print_ToFloat(self, expression: Any) -> str:
        return f"float({self._print(expression.args[0])})"


_PRINTER = _Printer()


DIVISOR = 16
"""A GPU moves up to this many elements at a time: `Graph.divisible`."""


def _is_multiple(node: Any, number: int) -> bool:
    """Whether a guard that the model itself installed implies it. Installs none."""
    return bool(statically_known_true(torch.SymInt(node) % number == 0))


def _is_natural(node: Any) -> bool:
    return bool(statically_known_true(torch.SymInt(node) >= 0))


class Sizes:
    """The sizes of one graph. `bind` binds the symbols that arguments pass."""

    def __init__(self, graph: Graph, lengths: Callable[[], Collection[Any]] = tuple) -> None:
        """`lengths`: torch's expressions that are a dimension of a tensor. None is negative."""
        self._graph = graph
        self._known: dict[Any, Size] = {}
        self._passed: dict[Any, Any] = {}
        self._shown: dict[Any, str] = {}
        self._solved: dict[Any, str] = {}
        self._env: Any = None
        """Torch's `ShapeEnv` of the symbols."""
        self._lengths = lengths

    def shape(self, sizes: Any) -> Shape:
        """The sizes or strides of a fake tensor."""
        return tuple(s if type(s) is int else self.of(s) for s in sizes)

    def of(self, value: Any) -> Size:
        """An int or a SymInt as a size. Raises `Unsupported` if it depends on tensor data."""
        if isinstance(value, int):
            return value
        expression = value.node._expr
        found = self._known.get(expression)
        if found is None:
            found = self._known[expression] = self.translate(value.node.expr)
        return found

    def bind(self, value: Any, name: str) -> str:
        """Bind a SymInt argument and return the symbol under which the caller passes it."""
        node = value.node
        expression = node.expr
        if expression in self._known or not expression.free_symbols:
            return name
        self._env = node.shape_env
        natural = _is_natural(node) or expression in self._lengths()
        if isinstance(expression, sympy.Symbol):
            name = str(expression.name)
        else:
            self._passed[expression] = sympy.Symbol(name, integer=True)
        self._hint(name, node)
        self._known[expression] = symbol(name) if natural else self._difference(name)
        return name

    def _difference(self, name: str) -> Size:
        """A number of either sign, since no symbol is negative (`loops.sizes.at_least`)."""
        return subtract(self._computed(f"max({name}, 0)"), self._computed(f"max(-{name}, 0)"))

    def show(self, size: Any, where: str) -> None:
        """Record that the size of an input, as Python text `where` (`primals_1.size(0)`), is a
        symbol, or determines one: the gradient of windows has 9*s0 columns."""
        node = size.node
        expression = node.expr
        self._env = node.shape_env
        if isinstance(expression, sympy.Symbol):
            if expression not in self._known:
                self._shown.setdefault(expression, where)
                self._hint(expression.name, node)
        elif len(expression.free_symbols) == 1:
            (free_symbol,) = expression.free_symbols
            factor, rest = expression.coeff(free_symbol, 1), expression.coeff(free_symbol, 0)
            if (
                isinstance(factor, sympy.Integer)
                and expression == factor * free_symbol + rest
                and factor
            ):
                self._solved.setdefault(free_symbol, f"({where} - {rest}) // {factor}")
                hint = getattr(node, "_hint", None)
                if isinstance(hint, int):
                    self._graph.hints.setdefault(
                        free_symbol.name, (hint - int(rest)) // int(factor)
                    )

    def _hint(self, name: str, node: Any) -> None:
        hint = getattr(node, "_hint", None)
        if isinstance(hint, int):
            self._graph.hints[name] = hint
        if _is_multiple(node, DIVISOR):
            self._graph.divisible.add(name)

    def translate(self, expression: Any) -> Size:
        """An integer sympy expression as a size."""
        found = self._known.get(expression)
        if found is None:
            found = self._known[expression] = self._fresh(expression)
        return found

    def _fresh(self, expression: Any) -> Size:
        if isinstance(expression, sympy.Integer):
            return int(expression)
        if isinstance(expression, sympy.Symbol):
            where = self._shown.get(expression) or self._solved.get(expression)
            if where is None:
                raise Unsupported(f"the size {expression} depends on the contents of a tensor")
            self._graph.symbols[expression.name] = where
            return symbol(expression.name)
        if getattr(expression, "is_integer", None):
            if isinstance(expression, sympy.Add):
                total: Size = 0
                for part in expression.args:
                    total = add(total, self.translate(part))
                return total
            if isinstance(expression, sympy.Mul) and not any(
                isinstance(part, sympy.Number) and not isinstance(part, sympy.Integer)
                for part in expression.args
            ):
                return product(self.translate(part) for part in expression.args)
            if (
                isinstance(expression, sympy.Pow)
                and isinstance(expression.exp, sympy.Integer)
                and 0 < int(expression.exp) <= 4
            ):
                whole: Size = 1
                for _ in range(int(expression.exp)):
                    whole = multiply(whole, self.translate(expression.base))
                return whole
        text = self._text(expression)
        return self._computed(text) if self._natural(expression) else self._difference(f"({text})")

    def _natural(self, expression: Any) -> bool:
        """Whether an expression is never negative: `(s0 - 3)//2` is for small sizes."""
        if expression in self._lengths():
            return True
        return self._env is not None and _is_natural(
            self._env.create_symintnode(expression, hint=None).node
        )

    def named(self, expression: Any) -> Size:
        """The symbol of any expression, floats included, for calls that need a Python number."""
        found = self._known.get(expression)
        if found is None:
            found = self._known[expression] = self._computed(self._text(expression))
        return found

    def _text(self, expression: Any) -> str:
        """An expression as Python computes it from the symbols."""
        written = expression.xreplace(self._passed) if self._passed else expression
        for part in sorted(written.free_symbols, key=str):
            if part not in self._passed.values():
                self.translate(part)
        return str(_PRINTER.doprint(written))

    def _computed(self, text: str) -> Size:
        """A new symbol, by its Python expression."""
        name = f"z{len(self._graph.symbols)}"
        self._graph.symbols[name] = text
        try:
            hint = eval(text, {"math": math}, dict(self._graph.hints))
        except Exception:
            hint = None
        if isinstance(hint, (bool, int)):
            self._graph.hints[name] = int(hint)
        return symbol(name)
