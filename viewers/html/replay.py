"""A recording in time: the stops of a slider, and the questions of a reader who predicts.

A stop shows what was known then. A driven compile has one wherever it waited, any other recording
one at the end of each stage. The questions, their order and their words are the workbench's
(`tcw.viewers.teaching.predict`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tcw.compiler.trace import refs
from tcw.compiler.trace.compile_names import compile_of
from tcw.compiler.trace.records import Graph, Partition
from tcw.viewers.kit.cells import cut
from tcw.viewers.navigator import Navigator
from tcw.viewers.panes import score
from tcw.viewers.panes.arrangement import STAGES
from tcw.viewers.panes.rows import Row
from tcw.viewers.panes.view import View, variant_of
from tcw.viewers.plain import plain
from tcw.viewers.reader import Reader
from tcw.viewers.teaching.predict import Question, Quiz, Truth, Truths

MOST_STOPS = 60
_LABEL = 60
"""Cells of a stop's label."""
_SHOWN = STAGES | {"passes": "source", "lowering": "fusion"}


@dataclass(frozen=True)
class ReplayStop:
    """A place in time, with the navigator at it."""

    label: str
    navigator: Navigator


@dataclass(frozen=True)
class Puzzle:
    """A question, with the navigator before and after it is answered, and the bars below."""

    question: Question
    truth: Truth
    asked: Navigator
    told: Navigator
    bars: dict[str, Sequence[Row]]
    """`ask`, `hint`; and what the answer tells the reader: `fuse`, `apart`, `skip`."""


def stops(reader: Reader) -> Iterator[ReplayStop]:
    """Draw each stop before requesting the next, since the reader has only one past."""
    track = reader.view.track
    if track.waits:
        places = [(index + 1, "") for index in track.waits]
    else:
        ends = [*track.stages[1:], track.count]
        staged = zip(ends, track.stage_names, strict=False)
        places = [(end, name) for end, name in staged if name in _SHOWN]
    for position, stage in _some(places):
        reader.go_to(position)
        navigator = reader.navigator
        wanted = _SHOWN[stage] if stage else navigator.arrangement
        navigator.arrangement = ""
        navigator.go(wanted)
        yield ReplayStop(_label(navigator.view, stage), navigator)


def _some(places: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """At most `MOST_STOPS` of them, evenly chosen, with the last."""
    if len(places) <= MOST_STOPS:
        return places
    return [places[(at + 1) * len(places) // MOST_STOPS - 1] for at in range(MOST_STOPS)]


def _label(view: View, stage: str) -> str:
    """`0/0 forward, fusion`; where a driven compile waits, what it waits at."""
    segment, waiting = view.track.segment_at(view.shown), view.waiting
    where = f"{segment.compile_id} {segment.name}".strip() if segment is not None else ""
    what = stage
    if waiting is not None:
        decision = waiting.decision.rpartition("/")[2]
        what = f"{waiting.stage}: {decision}" if decision else waiting.stage
    words = ", ".join(part for part in (where, what) if part)
    return cut(plain(words), _LABEL)


def puzzles(reader: Reader, cells: int) -> Iterator[Puzzle]:
    """Draw each one before requesting the next. `cells`: width of the bar."""
    quiz, truths = Quiz(), Truths(reader.recording)
    while (question := quiz.next(truths)) is not None:
        truth = truths.truth(question.id)
        assert truth is not None, "a question that is asked has an answer"
        reader.go_to(question.position)
        navigator = reader.navigator
        view = navigator.view
        view.question, view.pair, view.hidden = question, question.id, True
        navigator.compile(compile_of(question.graph))
        navigator.arrangement = "predict"
        navigator.light_pair()
        asked = Navigator(replace(view, lit=dict(view.lit)))
        asked.arrangement = "predict"
        told = Navigator(replace(view, lit=dict(view.lit), hidden=False))
        told.arrangement = "predict"
        yield Puzzle(question, truth, asked, told, _bars(view, question, truth, cells))
        view.question, view.hidden = None, False
        quiz.ask(question)
        quiz.answer(truth.choice, truth)


def _bars(view: View, question: Question, truth: Truth, cells: int) -> dict[str, Sequence[Row]]:
    """The count and the marks, which depend on the reader, are the page's."""
    found = {}
    for name, hint in (("ask", False), ("hint", True)):
        found[name] = score.bar(view, Quiz(question=question, hint=hint), cells)
    for name, answer in (("fuse", "fuse"), ("apart", "apart"), ("skip", "")):
        quiz = Quiz(question=question)
        quiz.answer(answer, truth)  # type: ignore[arg-type]
        found[name] = score.bar(view, quiz, cells)
    return {name: [replace(row, right=()) for row in rows] for name, rows in found.items()}


Make = Callable[[], Navigator | None]


def seeds(reader: Reader) -> Iterator[tuple[str, Make]]:
    """Key of a screen -> how to get there: the start of each view, nearest first."""
    view = reader.view
    recording, summary = view.recording, view.summary
    if reader.against is not None:
        yield _seed(reader, "differences", view.compile_id)
        yield _seed(reader, "what-if", view.compile_id)
    if view.derived.profile is not None:
        yield _seed(reader, "profile", view.compile_id)
    yield _seed(reader, "overview", view.compile_id)
    for compile_id in view.derived.pieces or [""]:
        yield _seed(reader, "source", compile_id)
    if summary.breaks:
        yield _seed(reader, "break", summary.breaks[0].compile_ids[0])
    if summary.recompiles:
        yield _seed(reader, "recompiles", view.compile_id)
    if view.derived.profile is not None:
        yield _seed(reader, "account", view.compile_id)
    if view.derived.comparison is not None:
        yield _seed(reader, "engines", view.compile_id)
    for compile_id in view.derived.pieces:
        for arrangement in ("graph", "kernels", "fusion", "memory", "guards"):
            yield _seed(reader, arrangement, compile_id)
        if any(partition.compile_id == compile_id for partition in recording.all(Partition)):
            yield _seed(reader, "autograd", compile_id)
    yield _seed(reader, "output", view.compile_id)
    for compile_id in view.derived.pieces:
        for kernel in view.recording.kernels_of.get(compile_id, []):
            if kernel.text:
                yield _kernel(reader, compile_id, kernel.id)
        for graph in view.derived.graphs_of.get(compile_id, []):
            yield _variant(reader, "source", compile_id, graph)
            yield _variant(reader, "graph", compile_id, graph)


def _seed(reader: Reader, arrangement: str, compile_id: str) -> tuple[str, Make]:
    def make() -> Navigator:
        navigator = copy_of(reader.navigator)
        if compile_id:
            navigator.compile(compile_id)
        navigator.go(arrangement)
        return navigator

    return f"{arrangement}|{compile_id}", make


def _kernel(reader: Reader, compile_id: str, kernel: str) -> tuple[str, Make]:
    _, base = _seed(reader, "source", compile_id)

    def make() -> Navigator | None:
        navigator = base()
        if navigator is not None:
            navigator.view.kernel = kernel
            navigator.view.select(refs.kernel(kernel))
        return navigator

    return f"source|{compile_id}|kernel:{kernel}", make


def _variant(reader: Reader, arrangement: str, compile_id: str, graph: Graph) -> tuple[str, Make]:
    _, base = _seed(reader, arrangement, compile_id)

    def make() -> Navigator | None:
        navigator = base()
        if navigator is not None:
            navigator.view.variant = variant_of(graph)
        return navigator

    return f"{arrangement}|{compile_id}|graph:{graph.id}", make


def copy_of(navigator: Navigator) -> Navigator:
    view = navigator.view
    copy = Navigator(replace(view, unfolded=set(view.unfolded), lit=dict(view.lit)))
    copy.arrangement = navigator.arrangement
    copy.language_chosen = navigator.language_chosen
    return copy
