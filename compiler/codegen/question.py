"""The code generator's own choices, as questions that may be answered with an override."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Question:
    """One choice, with the reasons for its default."""

    kind: str
    """`vector`, `lanes`, `tile`, …: each is asked in one file of `cpp/nests/`."""
    names: tuple[str, ...]
    """Names of the value that identifies the nest, or of the value in question."""
    default: str
    choices: tuple[str, ...]
    """All possible answers, including those that a rule forbids."""
    rule: str
    reason: str
    numbers: Mapping[str, int | float] = field(default_factory=dict)
    forbidden: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """choice -> (rule, reason) that makes it illegal."""
    means: str = ""
    origins: tuple[str, ...] = ()


Ask = Callable[[Question], str]


class Chooser:
    """Asks questions about the nests of one unit."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self._taken: set[tuple[str, ...]] = set()

    def nest(self, candidates: Sequence[str], origins: tuple[str, ...]) -> NestChooser:
        """A chooser for a nest, or for one of its phases. It is named after the first of these
        values whose name is unused, or `VALUE+totals` if all are used."""
        free = [one for one in candidates if ("", one) not in self._taken][:1]
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
    """Asks questions about one nest."""

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
        """The chosen answer, or the default without asking if there is no alternative. `about`
        names the value in question, if a nest has several questions of this kind."""
        if all(choice == default for choice in choices):
            return default
        names = self._chooser.name(kind, about) if about else self.names
        question = Question(
            kind,
            names,
            default,
            tuple(choices),
            rule,
            reason,
            numbers or {},
            forbidden or {},
            means,
            self.origins,
        )
        return self._chooser.ask(question)
