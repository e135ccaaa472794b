"""What tcw can try by itself, as options of its command line."""

from __future__ import annotations

from collections.abc import Iterable

from compiler.trace.records import Decided, FusionPair
from viewers.summary.profile.causes.cause import Suggestion
from viewers.summary.profile.index import Index
from viewers.summary.profile.rows import RegionRow

MOST = 2
"""Decisions of one region that are suggested."""

REDUCE_OVERHEAD = Suggestion(
    id="mode reduce-overhead", words="mode reduce-overhead", options=("--mode", "reduce-overhead")
)
MAX_AUTOTUNE = Suggestion(
    id="mode max-autotune", words="mode max-autotune", options=("--mode", "max-autotune")
)
DYNAMIC = Suggestion(
    id="dynamic", words="sizes and numbers dynamic from the start", options=("--dynamic",)
)


def other_engine(index: Index) -> tuple[Suggestion, ...]:
    """Our engine, where the other one was recorded on the CPU."""
    start = index.recording.start
    if start is None or start.settings.engine == "tcw" or index.head.clock != "host":
        return ()
    return (Suggestion(id="engine tcw", words="our engine", options=("--engine", "tcw")),)


def mode(index: Index, one: Suggestion) -> tuple[Suggestion, ...]:
    """A mode of torch.compile, which only Inductor knows, and which is not that of now."""
    start = index.recording.start
    if start is None or start.settings.engine == "tcw" or start.settings.mode == one.options[-1]:
        return ()
    return (one,)


def override(id: str, choice: str, words: str) -> Suggestion:
    return Suggestion(
        id=f"override {id} = {choice}", words=words, options=("--override", f"{id}={choice}")
    )


def kept_apart(index: Index, row: RegionRow) -> tuple[Suggestion, ...]:
    """The fusions of a region's kernels, each the other way; the last ones first, which join the
    largest groups."""
    kernels = [k for step in row.steps if (k := index.kernel_of(step)) is not None]
    names = {name for kernel in kernels for name in (*kernel.origins, *kernel.nodes)}
    graphs = {kernel.graph.removesuffix("/lowered") for kernel in kernels}
    found = [
        override(id, "apart", f"{words} kept apart")
        for graph, id, members, words in _fused(index)
        if graph.removesuffix("/lowered") in graphs and set(members) <= names
    ]
    return tuple(dict.fromkeys(reversed(found)))[:MOST]


def _fused(index: Index) -> Iterable[tuple[str, str, list[str], str]]:
    """(graph, id, the nodes that it names, in words) of each pair that was fused."""
    for decided in index.recording.all(Decided):
        named = _pair(decided.id)
        if decided.kind == "fuse" and decided.choice == "fuse" and "apart" in decided.choices:
            yield decided.graph, decided.id, named.split("+"), named.replace("+", " and ")
    for pair in index.recording.all(FusionPair):
        if pair.fused and pair.id and not pair.id.startswith("tcw/"):
            members = [*pair.first.split("_"), *pair.second.split("_")]
            yield pair.graph, pair.id, members, _pair(pair.id).replace("+", " and ")


def _pair(id: str) -> str:
    """`tcw/0/0/forward/fuse/exp+sum#2` -> `exp+sum`."""
    return id.rpartition("/")[2].partition("#")[0]
