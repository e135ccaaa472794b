"""What a code generator decides by itself, as questions that somebody else may answer otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Question:
    """One choice, with everything that speaks for its default."""

    kind: str
    """`vector`, `lanes`, `tile`, …: one file of `cpp/nests/` asks each."""
    names: tuple[str, ...]
    """Of the value that names the nest, or of the value that is asked about."""
    default: str
    choices: tuple[str, ...]
    """All answers that can be carried out, and those that a rule forbids."""
    rule: str
    reason: str
    numbers: Mapping[str, int | float] = field(default_factory=dict)
    forbidden: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """choice -> (rule, reason) that makes it illegal."""
    means: str = ""
    origins: tuple[str, ...] = ()


Ask = Callable[[Question], str]


class Chooser:
    """Asks about the nests of one unit."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self._taken: set[tuple[str, ...]] = set()

    def nest(self, candidates: Sequence[str], origins: tuple[str, ...]) -> NestChooser:
        """Of a nest, or one of its phases, named by the first of these values that names no
        other; by `VALUE+totals` where all do."""
        free = [one for one in candidates if ("", one) not in self._taken][:1]
        return NestChooser(self, self.name("", *(free or candidates[:1])), origins)

    def name(self, kind: str, value: str) -> tuple[str, ...]:
        """The value's name, or where it was given before in this kind `VALUE+totals`."""
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
        """The answer; the default without a question where there is nothing else. `about`: the
        value that it is about, where a nest has several such questions."""
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
