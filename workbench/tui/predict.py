"""Predict: the reader guesses how each pair fuses before the screen tells."""

from __future__ import annotations

from textual import events

from compiler.control.commands import Go
from compiler.trace.records import AnyRecord, Asked, Waiting
from viewers.panes import score
from viewers.panes.rows import Row
from viewers.teaching.predict import (
    QUESTIONS,
    Answer,
    Question,
    Quiz,
    Truth,
    Truths,
    question_of,
    summary,
    truth_of_asked,
)
from workbench.tui.commands import Hint
from workbench.tui.edge import Lines
from workbench.tui.presenter import Presenting

GUESSING: tuple[Hint, ...] = (
    ("y", "fused"), ("n", "kept apart"), ("-", "skip"), ("?", "hint"), ("esc", "end predict"),
)  # fmt: skip
TOLD: tuple[Hint, ...] = (("space", "next"), ("j k", "move"), ("esc", "end predict"))
ANSWERS: dict[str, Answer] = {"y": "fuse", "n": "apart", "minus": ""}


class Predicting(Presenting):
    """While a quiz is on, `y n - ?` and `space` are its keys. A recorded trace asks in its order,
    standing before the record that tells; a driven compile asks where it waits."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        self.predict_first = False
        """Begin with the first decision that there is."""
        self.questions = QUESTIONS
        """Asked about one graph; 0 for every pair."""
        self._truths = Truths()
        self._guessing = False

    @property
    def quiz(self) -> Quiz:
        if self.view.quiz is None:
            self.view.quiz = Quiz(self.questions)
        return self.view.quiz

    async def arrived(self, records: list[AnyRecord]) -> None:
        await super().arrived(records)
        self._truths.feed(records)
        if self.view.quiz is not None:
            self.view.quiz.learn(self._truths)
        if self.predict_first and not self._guessing and self._can_ask():
            self.predict_first = False
            await self.do_predict()
        elif self._guessing and any(isinstance(record, Waiting) for record in records):
            await self._wait_or_end()

    def _can_ask(self) -> bool:
        if self.view.driven:
            waiting = self.view.waiting
            return waiting is not None and (waiting.kind == "start" or self._asked() is not None)
        return bool(self._truths.questions) and self.recording.end is not None

    def _asked(self) -> Asked | None:
        """The fusion at which a driven compile waits."""
        asked = self.view.asked
        return asked if asked is not None and asked.kind == "fuse" else None

    # The questions

    async def do_predict(self) -> None:
        """Begin, or go on; without a decision to guess, say so."""
        self._guessing = True
        self.view.quiz = self.quiz
        self.view.presenting = True
        if await self._ask_next() or self._goes_to_next():
            return
        self._guessing = self.view.presenting = False
        words = "the compile does not wait: i pauses it"
        self.say(words if self.view.driven else "this recording has no fusion decision left")
        await self.rebuild()

    def _goes_to_next(self) -> bool:
        """Have a driven compile go on to a pair that is worth a question; whether it does."""
        waiting = self.view.waiting
        if not self.view.driven or waiting is None or waiting.kind == "end":
            return False
        asked = self._asked()
        enough = asked is not None and self.quiz.full(asked.graph)
        self.send(Go(mode="graph" if enough else "fusion"))
        self.say("to the next graph" if enough else "to the next fusion")
        return True

    async def _ask_next(self) -> bool:
        """Ask the next question; False where there is none."""
        if self.view.driven:
            asked = self._asked()
            if asked is None:
                return False
            if not self.quiz.takes(asked.id, asked.graph, truth_of_asked(asked)):
                return False
            await self._ask(question_of(asked))
            return True
        question = self.quiz.next(self._truths)
        if question is None:
            return False
        await self.go_to(question.position)
        await self._ask(question)
        return True

    async def _ask(self, question: Question) -> None:
        view = self.view
        self.quiz.ask(question)
        view.question, view.pair, view.hidden = question, question.id, True
        self.navigator.compile("/".join(question.graph.split("/")[:2]))
        self._show("predict")
        self.navigator.light_pair()
        await self.rebuild()

    def _show(self, arrangement: str) -> None:
        """It is the quiz that shows it: no choice of the reader's for such a place."""
        self.navigator.arrangement = self._belonged = arrangement

    async def _guess(self, answer: Answer) -> None:
        asked = self._asked() if self.view.driven else None
        question = self.quiz.question
        truth: Truth | None = None
        if question is not None:
            of_live = asked is not None and asked.id == question.id
            truth = truth_of_asked(asked) if of_live and asked else self._truths.truth(question.id)
        self.quiz.answer(answer, truth)
        self.view.hidden = False
        self.refresh_all()

    async def _go_on(self) -> None:
        if self.view.driven:
            self._goes_to_next()
        elif not await self._ask_next():
            await self.end_predict()

    async def _wait_or_end(self) -> None:
        """A driven compile waits again."""
        waiting = self.view.waiting
        if waiting is None:
            return
        if waiting.kind == "end":
            await self.end_predict()
        elif not await self._ask_next():
            self._goes_to_next()

    async def end_predict(self) -> None:
        """The score, and what was missed."""
        view = self.view
        self._guessing = view.hidden = view.presenting = False
        self.quiz.ask(None)
        view.question = None
        if not view.driven and view.playhead:
            await self.do_live()
        self._show("score")
        await self.rebuild()
        self.say(summary(self.quiz))

    # Keys and edges

    async def on_key(self, event: events.Key) -> None:
        if not self._guessing or self.focused is self.entry:
            return
        is_open = self.quiz.question is not None
        if is_open and event.key in ANSWERS:
            await self._guess(ANSWERS[event.key])
        elif is_open and event.key == "question_mark":
            self.quiz.hint = True
            self.refresh_all()
        elif not is_open and event.key in ("space", "enter"):
            await self._go_on()
        elif event.key == "escape":
            await self.end_predict()
        elif is_open and event.key not in MOVES:
            self.say("y fused, n kept apart, - skip, ? hint, esc ends it")
        else:
            return
        event.stop()
        event.prevent_default()

    def hints(self) -> tuple[Hint, ...]:
        if self._guessing:
            return GUESSING if self.quiz.question is not None else TOLD
        return super().hints()

    def _bar(self, width: int) -> Lines:
        if not self._guessing:
            return super()._bar(width)
        rows = score.bar(self.view, self.quiz, width)
        return [
            (
                Row(gutter=((" ", "text"),), body=row.body, right=row.right),
                "title" if row.heading else "",
            )
            for row in rows
        ]


MOVES = frozenset({
    "j", "k", "h", "l", "down", "up", "left", "right", "tab", "shift+tab", "pagedown", "pageup",
    "ctrl+d", "ctrl+u", "home", "G", "g", "colon", "ctrl+c", "q", "p", "plus", "equals_sign",
})  # fmt: skip
"""Keys that tell nothing: they work while a question is open."""
