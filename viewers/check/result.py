"""What was found for each target."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tcw.viewers.summary.budget import FactChange
from tcw.viewers.summary.differences.alignment import MatchedLine
from tcw.viewers.summary.differences.effects import Effect

Outcome = Literal["ok", "worse", "different", "better", "new", "failed", "interrupted"]
"""`new`: nothing was accepted for it yet. `failed`: it could not be recorded."""


@dataclass(frozen=True)
class TargetResult:
    """One target."""

    name: str
    file: str
    """Relative to the project's folder."""
    torch: str
    """`2.13`; "" if it did not come so far."""
    changes: tuple[FactChange, ...] = ()
    """Worst first."""
    facts: int = 0
    """How many facts were compared."""
    effects: tuple[Effect, ...] = ()
    """What changed since `base`, as in `tcw diff`; empty if nothing fails or no cause was found."""
    base: str = ""
    """The revision that the target was compared with; "" if with none."""
    no_cause: str = ""
    """Why no cause was found; "" if one was."""
    accepted_under: str = ""
    """The version of torch whose facts were compared, if not this one's."""
    new: bool = False
    failure: str = ""
    """Why it could not be recorded."""
    failed_at: MatchedLine | None = None
    """The user's line where it failed."""
    interrupted: bool = False
    seconds: float = 0.0

    @property
    def outcome(self) -> Outcome:
        if self.interrupted:
            return "interrupted"
        if self.failure:
            return "failed"
        if self.new:
            return "new"
        failing = [change.standing for change in self.changes if change.fails]
        if failing:
            return "worse" if "worse" in failing else "different"
        return "better" if any(change.standing == "better" for change in self.changes) else "ok"

    @property
    def fails(self) -> bool:
        return self.outcome in ("worse", "different", "failed", "new", "interrupted")

    @property
    def main_effect(self) -> Effect | None:
        """The most important one on how it compiles; else the first change of the model."""
        of_compile = (effect for effect in self.effects if effect.kind != "operation")
        return next(of_compile, next(iter(self.effects), None))

    @property
    def first_words(self) -> str:
        """The first thing to know: the most important effect, else the worst fact."""
        if self.failure:
            return self.failure
        if effect := self.main_effect:
            return f"{effect.place}  {effect.words}" if effect.place else effect.words
        return self.changes[0].words if self.changes else ""

    @property
    def cause(self) -> str:
        main = self.main_effect
        causes = [main.cause if main else "", *(effect.cause for effect in self.effects)]
        return next(filter(None, causes), "")


OUTCOME_WORDS: dict[Outcome, str] = {
    "ok": "as accepted",
    "worse": "worse than accepted",
    "different": "not as accepted",
    "better": "better than accepted",
    "new": "nothing accepted yet",
    "failed": "could not be recorded",
    "interrupted": "interrupted",
}


def accepting(result: TargetResult) -> str:
    """The command that accepts what was found."""
    return f"tcw check --accept {shlex.quote(result.name)}"


def counts(results: Sequence[TargetResult]) -> list[tuple[Outcome, int]]:
    """How many targets had each outcome, the worst outcome first."""
    order: tuple[Outcome, ...] = (
        "failed", "worse", "different", "new", "better", "ok", "interrupted",
    )  # fmt: skip
    found = [(one, sum(result.outcome == one for result in results)) for one in order]
    return [(one, count) for one, count in found if count]
