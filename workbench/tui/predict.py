"""Predict: the reader guesses how each pair fuses before the screen shows it."""

from __future__ import annotations

from dataclasses import dataclass

from tcw.compiler.protocol.commands import Go
from tcw.compiler.trace.compile_names import compile_of
from tcw.compiler.trace.records import AnyRecord, Decided, Waiting
from tcw.viewers.panes import score
from tcw.viewers.panes.rows import Row
from tcw.viewers.teaching.predict import (
    QUESTIONS,
    GuessedChoice,
    Question,
    Quiz,
    Truth,
    Truths,
    question_of,
    summary,
    truth_of_asked,
)
from tcw.workbench.tui.commands import command
from tcw.workbench.tui.desk import Controller
from tcw.workbench.tui.driving import Driving, Scrubbing
from tcw.workbench.tui.hints import Hint, hints_of

GUESSING = hints_of("=y: fused | =n: kept apart | =-: skip | =?: hint | =esc: end predict")
ANSWERED = hints_of("=space: next | down up: move | =esc: end predict")
ANSWERS: dict[str, GuessedChoice] = {"y": "fuse", "n": "apart", "minus": ""}


@dataclass(eq=False)
class Predicting(Controller):
    """Runs the quiz; its keys are `y n - ?` and `space`. In a recorded trace it follows the
    recorded order, with the playhead before the record that holds the answer; in a driven compile
    it asks where the compile waits."""

    scrubbing: Scrubbing
    driving: Driving
    predict_first: bool = False
    """Start at the first decision."""
    questions: int = QUESTIONS
    """How many per graph; 0 for every pair."""
    guessing: bool = False

    @property
    def quiz(self) -> Quiz:
        if self.view.quiz is None:
            self.view.quiz = Quiz(self.questions)
        return self.view.quiz

    @property
    def truths(self) -> Truths:
        return Truths(self.desk.recording)

    async def arrived(self, records: list[AnyRecord]) -> None:
        """Ask about a decision that came with new records."""
        if self.view.quiz is not None:
            self.view.quiz.learn(self.truths)
        if self.predict_first and not self.guessing and self._can_ask():
            self.predict_first = False
            await self.predict()
        elif self.guessing and any(isinstance(record, Waiting) for record in records):
            await self._wait_or_end()

    def _can_ask(self) -> bool:
        if self.view.driven:
            waiting = self.view.waiting
            return waiting is not None and (waiting.kind == "start" or self._asked() is not None)
        return self.truths.any and self.desk.recording.end is not None

    def _asked(self) -> Decided | None:
        """The fusion decision at which a driven compile waits."""
        asked = self.view.asked
        return asked if asked is not None and asked.kind == "fuse" else None

    # The questions

    @command("Predict how pairs fuse, then see")
    async def predict(self) -> None:
        """Start or continue; say so if there is no decision to guess."""
        self.guessing = True
        self.view.quiz = self.quiz
        self.view.presenting = True
        if await self._ask_next() or self._goes_to_next():
            return
        self.guessing = self.view.presenting = False
        words = "the compile does not wait: i pauses it"
        self.desk.say(words if self.view.driven else "this recording has no fusion decision left")
        await self.desk.rebuild()

    def _goes_to_next(self) -> bool:
        """Let a driven compile go on to the next pair to ask about; False if it cannot."""
        waiting = self.view.waiting
        if not self.view.driven or waiting is None or waiting.kind == "end":
            return False
        asked = self._asked()
        enough = asked is not None and self.quiz.full(asked.graph)
        self.driving.send(Go(mode="graph" if enough else "fusion"))
        self.desk.say("to the next graph" if enough else "to the next fusion")
        return True

    async def _ask_next(self) -> bool:
        """Ask the next question; False if there is none."""
        if self.view.driven:
            asked = self._asked()
            if asked is None:
                return False
            if not self.quiz.takes(asked.id, asked.graph, truth_of_asked(asked)):
                return False
            await self._ask(question_of(asked))
            return True
        question = self.quiz.next(self.truths)
        if question is None:
            return False
        await self.scrubbing.go_to(question.position)
        await self._ask(question)
        return True

    async def _ask(self, question: Question) -> None:
        view = self.view
        self.quiz.ask(question)
        view.question, view.pair, view.hidden = question, question.id, True
        self.desk.navigator.compile(compile_of(question.graph))
        self._show("predict")
        self.desk.navigator.light_pair()
        await self.desk.rebuild()

    def _show(self, arrangement: str) -> None:
        """Show an arrangement; it does not count as the reader's choice for this place."""
        self.desk.navigator.arrangement = self.driving.belonged = arrangement

    async def _guess(self, answer: GuessedChoice) -> None:
        asked = self._asked() if self.view.driven else None
        question = self.quiz.question
        truth: Truth | None = None
        if question is not None:
            of_live = asked is not None and asked.id == question.id
            truth = truth_of_asked(asked) if of_live and asked else self.truths.truth(question.id)
        self.quiz.answer(answer, truth)
        self.view.hidden = False
        self.desk.refresh_all()

    async def _go_on(self) -> None:
        if self.view.driven:
            self._goes_to_next()
        elif not await self._ask_next():
            await self.end_predict()

    async def _wait_or_end(self) -> None:
        """Ask or end, now that a driven compile waits again."""
        waiting = self.view.waiting
        if waiting is None:
            return
        if waiting.kind == "end":
            await self.end_predict()
        elif not await self._ask_next():
            self._goes_to_next()

    async def end_predict(self) -> None:
        """End the quiz; show the score and the wrong guesses."""
        view = self.view
        self.guessing = view.hidden = view.presenting = False
        self.quiz.ask(None)
        view.question = None
        if not view.driven and view.playhead:
            await self.scrubbing.live()
        self._show("score")
        await self.desk.rebuild()
        self.desk.say(summary(self.quiz))

    # Keys and edges

    async def key(self, key: str) -> bool:
        """Take a key; False if it is left to the commands."""
        if not self.guessing:
            return False
        is_open = self.quiz.question is not None
        if is_open and key in ANSWERS:
            await self._guess(ANSWERS[key])
        elif is_open and key == "question_mark":
            self.quiz.hint = True
            self.desk.refresh_all()
        elif not is_open and key in ("space", "enter"):
            await self._go_on()
        elif key == "escape":
            await self.end_predict()
        elif is_open and key not in MOVES:
            self.desk.say("y fused, n kept apart, - skip, ? hint, esc ends it")
        else:
            return False
        return True

    @property
    def hints(self) -> tuple[Hint, ...]:
        return GUESSING if self.quiz.question is not None else ANSWERED

    def bar(self, width: int) -> list[Row]:
        return score.bar(self.view, self.quiz, width)


MOVES = frozenset({
    "j", "k", "h", "l", "down", "up", "left", "right", "tab", "shift+tab", "pagedown", "pageup",
    "ctrl+d", "ctrl+u", "home", "G", "g", "colon", "ctrl+c", "q", "p", "plus", "equals_sign",
})  # fmt: skip
"""Keys that work while a question is open, since they reveal nothing."""
