"""Values of a nest as text, on every target: each in the outermost scope that has what it needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Generic, Self, TypeVar

from tcw.compiler.codegen.nests.facts import Facts
from tcw.compiler.loops.expressions import Expression, Local, Op, ReadIndexed
from tcw.compiler.loops.nest import Let

LONGEST = 50
"""Maximum depth of values computed by recursion; longer chains are started early."""


class Level:
    """One loop level of the text."""

    def __init__(self, parent: Self | None, axes: frozenset[int] = frozenset()) -> None:
        self.parent: Self | None = parent
        self.depth: int = parent.depth + 1 if parent else 0
        self.axes: frozenset[int] = axes | (parent.axes if parent else frozenset())
        """Axes whose index is available here."""
        self.memo: dict[object, str] = {}

    def chain(self) -> Iterator[Self]:
        """This scope and its enclosing scopes, innermost first."""
        scope: Self | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


S = TypeVar("S", bound=Level)


class NestValues(ABC, Generic[S]):
    """Finds the scope of each value; a target writes its text."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.defined: dict[str, tuple[S, str]] = {}
        """Results of reductions and scans: the scope that holds each, and its name."""
        self._depths: dict[str, int] = {}
        """Scope depth of each `Let`, given where results are currently held."""

    def define(self, name: str, scope: S, text: str) -> None:
        """Define the result of a reduction or scan, in a variable of the scope."""
        self.defined[name] = (scope, text)
        self._depths.clear()

    def of(self, expression: Expression, scope: S) -> str:
        """The text of a value that is not a constant."""
        home = self.home(expression, scope)
        text = home.memo.get(expression)
        if text is None:
            text = self._compute(expression, home, away=home is not scope)
            home.memo[expression] = text
        return text

    @abstractmethod
    def _compute(self, expression: Expression, scope: S, *, away: bool) -> str:
        """The text of a value, computed in its own scope; `away`: for a scope inside it."""

    def home(self, expression: Expression, scope: S) -> S:
        """The outermost scope in which an expression can be computed."""
        axes, depth = self.facts.axes(expression), self._depth(expression)
        home = scope
        for outer in scope.chain():
            if outer.depth < depth or not axes <= outer.axes:
                break
            home = outer
        return home

    def _depth(self, expression: Expression) -> int:
        """The depth of the innermost scope that holds something that the expression needs."""
        if isinstance(expression, Op):
            return max((self._depth(argument) for argument in expression.args), default=0)
        if isinstance(expression, ReadIndexed):
            return max((self._depth(term.index) for term in expression.terms), default=0)
        if isinstance(expression, Local):
            held = self._held(expression.name)
            if held is None and isinstance(self.facts.named[expression.name], Let):
                return self._depth_of(expression.name)
            return held or 0
        return 0

    def _held(self, name: str) -> int | None:
        """The depth of the scope that holds a value; None for one that is computed where used."""
        return self.defined[name][0].depth if name in self.defined else None

    def _depth_of(self, name: str) -> int:
        """The depth of a `Let`. All depths are computed in order, once each."""
        if name not in self._depths:
            for statement in self.facts.nest.statements:
                if isinstance(statement, Let):
                    self._depths[statement.name] = self._depth(statement.expression)
        return self._depths[name]

    def _statement(self, name: str, scope: S) -> Let:
        """The statement that computes a value; the start of a long chain of values is computed
        early, to bound Python's recursion depth."""
        statement, levels = self.facts.named[name], self.facts.levels
        assert isinstance(statement, Let), f"{name} is used before it is complete"
        if levels[name] % LONGEST:
            return statement
        needed, found = {name}, [name]
        while found:
            for inner in self.facts.locals_in(self.facts.named[found.pop()]):
                if self._held(inner) is None and inner not in needed and levels[inner]:
                    needed.add(inner)
                    found.append(inner)
        needed.remove(name)
        for other in self.facts.nest.statements:
            if isinstance(other, Let) and other.name in needed and not levels[other.name] % LONGEST:
                self.of(Local(other.name, other.dtype), scope)
        return statement
