"""Guessing how fusion decides: the questions that a recording holds, and the score. No widget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from tcw.compiler.protocol.decision import APART, FUSE, NOTHING_SHARED
from tcw.compiler.trace.records import Decided, Run, SchedulerNode
from tcw.viewers.collected import grouped
from tcw.viewers.recording import Recording
from tcw.viewers.summary.fusion import pair_of, sides_of
from tcw.viewers.words import bytes_text, listed, plural, shape_text

GuessedChoice = Literal["fuse", "apart", ""]
"""`""`: skipped."""

QUESTIONS = 12
"""Questions about one graph, unless the reader wants more."""
_AHEAD = 2
"""A pair is asked about only if its answer is at most this far ahead of the other in its graph."""


@dataclass(frozen=True)
class Question:
    """Will the compiler fuse these two?"""

    id: str
    graph: str
    first: str
    """Scheduler nodes of the first side, as records name them: `op9_op10`."""
    second: str
    position: int = 0
    """The number of records before the first one about the pair; 0 in a live compile."""


@dataclass(frozen=True)
class Truth:
    """How it was decided, and why."""

    choice: Literal["fuse", "apart"]
    rule: str = ""
    reason: str = ""
    overridden: bool = False
    between: tuple[str, ...] = ()
    """Scheduler nodes that keep the two apart."""


def truth_of_asked(asked: Decided) -> Truth:
    """What the engine is about to do: known while it waits for an answer."""
    return Truth(
        "fuse" if asked.default == FUSE else "apart",
        asked.rule,
        asked.reason,
        between=asked.between,
    )


def question_of(posed: Decided, position: int = 0) -> Question:
    return Question(posed.id, posed.graph, *posed.sides, position)


@dataclass(frozen=True)
class Guess:
    """A question with the reader's answer and the truth."""

    question: Question
    answer: GuessedChoice
    truth: Truth | None = None
    """None until it is known."""

    @property
    def right(self) -> bool | None:
        """None for one that was skipped or is not decided yet."""
        if not self.answer or self.truth is None:
            return None
        return self.answer == self.truth.choice


class Truths:
    """How each pair of a trace was decided, now or when it has grown. The last run counts."""

    def __init__(self, trace: Recording) -> None:
        self._trace = trace

    @property
    def _run(self) -> Recording:
        run = self._trace.last(Run)
        return self._trace.runs.get(run.number, self._trace) if run is not None else self._trace

    @property
    def any(self) -> bool:
        """Whether there is a pair to ask about."""
        return bool(self._run.decisions.posed)

    def truth(self, id: str) -> Truth | None:
        """How a pair ended; None if that is not known, or where neither is true: the two may
        fuse, and one of them fused elsewhere first."""
        pair = pair_of(self._run.decisions, id)
        if pair is None or pair.verdict in ("passed", "queued"):
            return None
        overridden = pair.decided is not None and pair.decided.overridden
        if pair.verdict == "rejected":
            return Truth("apart", pair.rule, pair.reason, overridden, pair.between)
        return Truth("fuse", *pair.why_fused, overridden)

    def askable(self) -> list[Question]:
        """The questions that have an answer, in the order of the trace."""
        posed = self._run.decisions.posed
        return [
            question_of(record, self._trace.place(record) - 1)
            for id, record in posed.items()
            if self.truth(id) is not None
        ]


@dataclass
class Quiz:
    """A reader's guesses."""

    most: int = QUESTIONS
    """Questions about one graph; 0 for every pair, dull ones too."""
    guesses: list[Guess] = field(default_factory=list)
    question: Question | None = None
    """The one that is open."""
    hint: bool = False
    """A hint was requested."""

    def ask(self, question: Question | None) -> None:
        self.question, self.hint = question, False

    def answer(self, answer: GuessedChoice, truth: Truth | None) -> Guess | None:
        """The reader's answer to the open question; None if none is open."""
        if self.question is None:
            return None
        guess = Guess(self.question, answer, truth)
        self.guesses.append(guess)
        self.question = None
        return guess

    def learn(self, truths: Truths) -> None:
        """Take the truth of guesses that were made before it was known."""
        for index, guess in enumerate(self.guesses):
            if guess.truth is None:
                truth = truths.truth(guess.question.id)
                if truth is not None:
                    self.guesses[index] = replace(guess, truth=truth)

    def asked(self, id: str) -> bool:
        return any(guess.question.id == id for guess in self.guesses)

    def full(self, graph: str) -> bool:
        """Whether a graph has had all its questions."""
        return bool(self.most) and len(self._about(graph)) >= self.most

    def takes(self, id: str, graph: str, truth: Truth) -> bool:
        """Whether a pair is worth a question: it was not asked, the two share something, and its
        answer is not the one that nearly all questions had."""
        if self.asked(id):
            return False
        if not self.most:
            return True
        if self.full(graph) or (truth.choice == APART and truth.rule == NOTHING_SHARED):
            return False
        had = [guess.truth.choice for guess in self._about(graph) if guess.truth is not None]
        same = had.count(truth.choice)
        return same - (len(had) - same) <= _AHEAD

    def next(self, truths: Truths) -> Question | None:
        """The next question of a recorded trace, in its order; None if there is none left."""
        questions = truths.askable()
        place = {question.id: index for index, question in enumerate(questions)}
        last = place.get(self.guesses[-1].question.id, -1) if self.guesses else -1
        for question in questions[last + 1 :]:
            truth = truths.truth(question.id)
            if truth is not None and self.takes(question.id, question.graph, truth):
                return question
        return None

    def _about(self, graph: str) -> list[Guess]:
        return [guess for guess in self.guesses if guess.question.graph == graph]

    @property
    def right(self) -> int:
        return sum(guess.right is True for guess in self.guesses)

    @property
    def scored(self) -> int:
        return sum(guess.right is not None for guess in self.guesses)

    @property
    def missed(self) -> list[Guess]:
        return [guess for guess in self.guesses if guess.right is False]

    @property
    def words(self) -> str:
        """`2 of 3 right`; "" before the first guess."""
        return f"{self.right} of {self.scored} right" if self.scored else ""


def hint(first: Sequence[SchedulerNode], second: Sequence[SchedulerNode]) -> str:
    """What the two sides show by themselves, without the engine's rule."""
    sides = sides_of(first, second)
    shared, (one, other) = sides.shared, sides.domains
    words = []
    if shared:
        words.append(f"both touch {listed(shared, 2)}")
    else:
        words.append("they touch no buffer in common")
    words.append("B reads what A writes" if sides.chained else "neither reads the other")
    if one and other:
        same = "the same domain" if one == other else "domains"
        sizes = shape_text(one) if one == other else f"{shape_text(one)} and {shape_text(other)}"
        words.append(f"{same} {sizes}")
    moved = sum(node.write_bytes or 0 for node in first)
    if moved:
        words.append(f"A writes {bytes_text(moved)}")
    return ", ".join(words)


def lessons(missed: Sequence[Guess]) -> list[tuple[str, list[Guess]]]:
    """Rule -> the guesses that it proved wrong, the rule that did so most often first."""
    truths = [(guess.truth, guess) for guess in missed if guess.truth is not None]
    found = grouped((truth.rule if truth.choice == APART else "", guess) for truth, guess in truths)
    return sorted(found.items(), key=lambda item: -len(item[1]))


def summary(quiz: Quiz) -> str:
    """`7 of 10 right, 2 skipped`."""
    skipped = sum(not guess.answer for guess in quiz.guesses)
    if not quiz.scored:
        return f"no guess, {plural(skipped, 'question')} skipped" if skipped else "no guess"
    return quiz.words + (f", {skipped} skipped" if skipped else "")
