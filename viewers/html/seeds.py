"""Where a tour of a trace starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tcw.compiler.trace import refs
from tcw.compiler.trace.records import Graph, Partition
from tcw.viewers.navigator import Navigator
from tcw.viewers.panes.view import variant_of
from tcw.viewers.reader import Reader

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
        if any(one.compile_id == compile_id for one in recording.all(Partition)):
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
