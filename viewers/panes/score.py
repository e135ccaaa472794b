"""Guessing how fusion decides: the question, the truth, and the score at the end."""

from __future__ import annotations

from tcw.viewers.kit.cells import cut, pad, wrap
from tcw.viewers.kit.spans import Line, Role, Span
from tcw.viewers.panes.fusion import between_rows, between_words, history_words, label_of, nodes_of
from tcw.viewers.panes.rows import BLANK, Content, Row, empty, prose_rows, text_row
from tcw.viewers.panes.targets import ToPair, ToView
from tcw.viewers.panes.view import View
from tcw.viewers.summary.fusion import pair_of, rule_words
from tcw.viewers.teaching.predict import Guess, Question, Quiz, hint, lessons, summary

WORDS = {"fuse": "fused", "apart": "kept apart", "": "skipped"}
SIGNS: dict[bool | None, tuple[str, Role]] = {
    True: ("✓", "good"),
    False: ("✗", "bad"),
    None: ("-", "dim"),
}


def _marks(quiz: Quiz) -> Line:
    """`✓✓✗  2 of 3 right`."""
    spans: list[Span] = [SIGNS[guess.right] for guess in quiz.guesses[-12:]]
    words = quiz.words
    return (*spans, (f"  {words} " if words else "", "dim"))


def bar(view: View, quiz: Quiz, width: int) -> list[Row]:
    """Below the panes: the open question, or the answer to the last one."""
    if quiz.question is not None:
        return _asks(view, quiz, quiz.question, width)
    return _tells(view, quiz, quiz.guesses[-1], width) if quiz.guesses else []


def _asks(view: View, quiz: Quiz, question: Question, width: int) -> list[Row]:
    count: Span = (f"guess {len(quiz.guesses) + 1}    ", "dim")
    said: Span = ("rule, score and result are hidden until you choose", "dim")
    if quiz.hint:
        first, second = (
            nodes_of(view, question.graph, name)
            or nodes_of(view, f"{question.graph}/lowered", name)
            for name in (question.first, question.second)
        )
        said = (f"hint: {hint(first, second)}", "text")
    return [
        text_row(
            ("Will the compiler fuse A and B?", "strong"),
            right=(count, *_marks(quiz)),
            heading=True,
        ),
        BLANK,
        _buttons(" y fused ", " n kept apart ", " - skip ", " ? hint "),
        BLANK,
        *prose_rows(said[0], width - 2, said[1])[:2],
    ]


def _buttons(*words: str) -> Row:
    return text_row(*(piece for word in words for piece in ("   ", (word, "button"))))


def _tells(view: View, quiz: Quiz, guess: Guess, width: int) -> list[Row]:
    truth = guess.truth
    if truth is None:
        title: Line = (("It is not decided yet", "strong"),)
        why = ""
    else:
        sign, role = SIGNS[guess.right]
        was = "they are fused" if truth.choice == "fuse" else "they are kept apart"
        if guess.right:
            words = f"Right: {was}"
        elif guess.right is False:
            words = f"No: {was}"
        else:
            words = was.capitalize()
        title = ((f"{sign} ", role), (words, "strong"))
        why = reason_of(guess)
    lines = wrap(why, width - 12)[:3] if why else []
    rows = [Row(body=title, right=_marks(quiz), heading=True), BLANK]
    for number, line in enumerate(lines):
        rows.append(text_row((pad("why" if not number else "", 9), "dim"), line))
    if truth is not None:
        rows += between_rows(view, guess.question.graph, truth.between)
        if then := _history(view, guess.question.id):
            rows += [
                text_row((pad("" if number else "rounds", 9), "dim"), line)
                for number, line in enumerate(wrap(then, width - 12)[:2])
            ]
    left = _buttons(" space next ", " esc the score ")
    return [*rows, *[BLANK] * (6 - len(rows)), left]


def _history(view: View, id: str) -> str:
    """What became of the pair in all rounds so far, where more than one tested it: an answer that
    was right in one round need not be so in the end."""
    pair = pair_of(view.recording.decisions, id)
    return history_words(view, pair) if pair is not None else ""


def reason_of(guess: Guess) -> str:
    """`with nodes between: intermediate nodes between amax and var_mean: exp, div`."""
    truth = guess.truth
    if truth is None:
        return "not decided yet"
    rule = rule_words(truth.rule) if truth.rule else ""
    words = ": ".join(part for part in (rule, truth.reason) if part) or "no reason is given"
    return words + ("   (an override asked for it)" if truth.overridden else "")


def content(view: View, width: int) -> Content:
    """The score, and the wrong guesses by the rule that decided."""
    quiz = view.quiz
    if quiz is None or not quiz.guesses:
        why = "no guess was made"
        return Content("score", rows=empty(width, why, "press : and choose Predict how pairs fuse"))
    rows = [
        BLANK,
        text_row(" ", (summary(quiz), "title"), "   ", *_marks(quiz)[:-1]),
    ]
    if not quiz.missed and quiz.scored:
        rows.append(text_row((" no wrong guess", "good")))
    for rule, guesses in lessons(quiz.missed):
        words = rule_words(rule) if rule else "they were fused"
        rows += [BLANK, text_row((f" ✗ {len(guesses)} ", "bad"), (words, "strong"))]
        for guess in guesses:
            rows += _missed(view, guess, width)
    return Content("score", right=((quiz.words, "dim"),), rows=rows)


def _missed(view: View, guess: Guess, width: int) -> list[Row]:
    question = guess.question
    graph = question.graph
    known = nodes_of(view, graph, question.first)
    graph = graph if known else f"{graph}/lowered"
    first = label_of(view, graph, question.first).replace(", ", ",")
    second = label_of(view, graph, question.second).replace(", ", ",")
    truth = guess.truth
    was = WORDS[truth.choice] if truth is not None else "not decided"
    head = text_row(
        "   " + cut(f"{first} + {second}", max(12, width - 40)),
        (f"   you: {WORDS[guess.answer]}   it is {was}", "dim"),
        at=ToPair(question.id),
        opens=ToView("fusion"),
        copies=question.id,
    )
    why = wrap(truth.reason, width - 8)[:2] if truth is not None and truth.reason else []
    between = between_words(view, graph, truth.between) if truth is not None else ""
    why += [f"between: {between}"] if between else []
    why += wrap(_history(view, question.id), width - 8)[:2]
    return [head, *(text_row((f"     {line}", "faint")) for line in why)]
