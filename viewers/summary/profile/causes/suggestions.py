"""What tcw can try itself, as command-line options."""

from __future__ import annotations

from tcw.compiler.trace.matching import base_graph
from tcw.viewers.summary.profile.causes.cause import Suggestion
from tcw.viewers.summary.profile.index import Index
from tcw.viewers.summary.profile.rows import RegionRow

MOST = 2
"""Maximum number of decisions suggested for one region."""

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
    """Our engine, if the other one was recorded on the CPU."""
    settings = index.recording.settings
    if settings is None or settings.engine == "tcw" or index.head.clock != "host":
        return ()
    return (Suggestion(id="engine tcw", words="our engine", options=("--engine", "tcw")),)


def mode(index: Index, one: Suggestion) -> tuple[Suggestion, ...]:
    """A mode of torch.compile other than the current one; Inductor only."""
    settings = index.recording.settings
    if settings is None or settings.engine == "tcw" or settings.mode == one.options[-1]:
        return ()
    return (one,)


def override(id: str, choice: str, words: str) -> Suggestion:
    return Suggestion(
        id=f"override {id} = {choice}", words=words, options=("--override", f"{id}={choice}")
    )


def kept_apart(index: Index, row: RegionRow) -> tuple[Suggestion, ...]:
    """The opposite choice for fusions of a region's kernels; the last ones first, which join the
    largest groups."""
    kernels = [k for step in row.steps if (k := index.kernel_of(step)) is not None]
    names = {name for kernel in kernels for name in (*kernel.origins, *kernel.nodes)}
    graphs = {base_graph(kernel.graph) for kernel in kernels}
    found = [
        override(id, "apart", f"{words} kept apart")
        for graph, id, members, words in index.fusions
        if base_graph(graph) in graphs and members <= names
    ]
    return tuple(dict.fromkeys(reversed(found)))[:MOST]
