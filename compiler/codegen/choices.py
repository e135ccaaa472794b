"""The code generator's own choices, each a `Decision` about a nest or one of its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tcw.compiler.loops.expressions import Local
from tcw.compiler.loops.nest import Let, Nest, Write
from tcw.compiler.protocol.decision import Decision, Detail

Ask = Callable[[Decision], str]
"""Returns one of the decision's choices."""


class Chooser:
    """Asks about the nests of one unit."""

    def __init__(self, ask: Ask, graph: str) -> None:
        """`graph` is the id of the graph, which begins the decisions' ids."""
        self.ask = ask
        self.graph = graph
        self._taken: set[tuple[str, ...]] = set()

    def nest(self, candidates: Sequence[str], origins: tuple[str, ...]) -> NestChooser:
        """A chooser for a nest, or for one of its phases. It is named after the first of these
        values whose name is unused, or `VALUE+totals` if all are used."""
        free = [candidate for candidate in candidates if ("", candidate) not in self._taken][:1]
        return NestChooser(self, self.name("", *(free or candidates[:1])), origins)

    def name(self, kind: str, value: str) -> tuple[str, ...]:
        """The value's name, or `VALUE+totals` if it is already used for this kind."""
        names: tuple[str, ...] = (value,)
        number = 1
        while (kind, *names) in self._taken:
            names = (value, "totals" if number == 1 else f"totals{number}")
            number += 1
        self._taken.add((kind, *names))
        return names


@dataclass(frozen=True, slots=True)
class NestChooser:
    """Asks about one nest."""

    _chooser: Chooser
    names: tuple[str, ...]
    origins: tuple[str, ...]

    def choose(
        self,
        kind: str,
        default: str,
        choices: Sequence[str],
        rule: str,
        reason: str,
        *,
        numbers: Mapping[str, int | float] | None = None,
        forbidden: Mapping[str, tuple[str, str]] | None = None,
        means: str = "",
        about: str = "",
    ) -> str:
        """The choice, or the default without asking if there is no alternative. `about`
        names the value in question, if a nest has several decisions of this kind."""
        if all(choice == default for choice in choices):
            return default
        names = self._chooser.name(kind, about) if about else self.names
        decision = Decision(
            self._chooser.graph,
            kind,
            names,
            default,
            tuple(choices),
            rule,
            reason,
            numbers or {},
            forbidden or {},
            lambda: Detail(origins=self.origins, means=means),
        )
        return self._chooser.ask(decision)


def of_nest(chooser: Chooser | None, nest: Nest) -> NestChooser | None:
    """The chooser for a nest, named after a value that it stores, or else one that it computes."""
    if chooser is None:
        return None
    stored: list[str] = []
    made: list[str] = []
    lets: list[str] = []
    buffers: list[str] = []
    for statement in nest.statements:
        if isinstance(statement, Write):
            value = statement.expression
            own = isinstance(value, Local) and value.name == statement.buffer
            (stored if own else buffers).append(statement.buffer.partition(".")[0])
        else:
            (lets if isinstance(statement, Let) else made).append(statement.name)
    names = dict.fromkeys((*stored, *made, *lets, *buffers, nest.name))
    return chooser.nest(list(names), nest.origins())
