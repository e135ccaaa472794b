"""All rewrites in their order, on one screen: what each does, and where it applies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torch import fx
from torch._functorch import config as functorch_config

from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.graphs.current import current_graph_id
from tcw.compiler.graphs.watched_passes import WatchedPasses
from tcw.compiler.rewrites.aligned_products import aligned_products
from tcw.compiler.rewrites.attention_masks import attention_masks
from tcw.compiler.rewrites.channels_last import channels_last
from tcw.compiler.rewrites.common_subexpressions import merge_common_subexpressions
from tcw.compiler.rewrites.complex_scatters import complex_copies, complex_scatters
from tcw.compiler.rewrites.drawn_numbers import drawn_numbers_in_float64
from tcw.compiler.rewrites.library_products import library_products
from tcw.compiler.rewrites.padded_rows import padded_rows
from tcw.compiler.rewrites.subject import Subject, choose
from tcw.compiler.rewrites.unread_vectors import drop_unread_vectors, unread_vectors
from tcw.compiler.rewrites.vector_products import vector_products
from tcw.compiler.rewrites.wide_statistics import keep_statistics_wide
from tcw.compiler.rewrites.wide_sums import narrow_sums, wide_sums

APPLY = "apply"
SKIP = "skip"
"""The choices of a decision of kind `pass`, about a rewrite as a whole in one graph."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One rewrite."""

    name: str
    """As it is recorded, and as its decision is called."""
    sentence: str
    change: Callable[[Subject], int]
    """Changes the graph in place; returns the number of changes."""
    applies: Callable[[Subject], bool] = lambda subject: True
    candidates: Callable[[fx.Graph], Iterator[fx.Node]] | None = None
    """The nodes that it changes: it is a choice as a whole. None for a rewrite that asks about each
    node, and for what is no choice."""


def _on_cpu(subject: Subject) -> bool:
    return subject.device == "cpu"


def _on_gpu(subject: Subject) -> bool:
    return subject.device == "cuda"


CAPTURED = (
    Rewrite(
        "drawn_numbers",
        "Numbers that Python's `random` draws are read as float64, as they come.",
        drawn_numbers_in_float64,
    ),
    Rewrite(
        "attention_masks",
        "Masks that are the same in each call are dropped, or become `is_causal`.",
        attention_masks,
    ),
)
"""Of TorchDynamo's graph."""

JOINT = (
    Rewrite(
        "wide_statistics",
        "A backward reads the statistics of 16-bit tensors before they are rounded.",
        keep_statistics_wide,
    ),
    Rewrite(
        "common_subexpressions",
        "Equal operations become one.",
        merge_common_subexpressions,
        lambda subject: bool(functorch_config.cse),
    ),
)
"""Of forward and backward, before they are cut apart."""

LOWERED = (
    Rewrite("channels_last", "Convolutions get images in NHWC memory.", channels_last),
    Rewrite(
        "unread_vectors",
        "Singular values and eigenvalues are computed alone if nothing reads the vectors.",
        drop_unread_vectors,
        candidates=unread_vectors,
    ),
    Rewrite(
        "complex_scatters",
        "Complex tensors are copied, and their slices written, in fewer passes over memory.",
        complex_scatters,
        candidates=complex_copies,
    ),
    Rewrite(
        "vector_products",
        "Products with a vector become a multiplication and a sum.",
        vector_products,
        _on_cpu,
    ),
    Rewrite(
        "library_products",
        "Large products become calls of oneDNN where it is faster than ATen's library.",
        library_products,
        _on_cpu,
    ),
    Rewrite(
        "aligned_products",
        "16-bit products are padded to rows of whole 16 bytes.",
        aligned_products,
        _on_gpu,
    ),
    Rewrite(
        "wide_sums",
        "16-bit sums at indices are added in float32.",
        wide_sums,
        _on_gpu,
        candidates=narrow_sums,
    ),
    Rewrite(
        "padded_rows",
        "Results that are part of a padded product stay in its rows.",
        padded_rows,
    ),
)
"""Of each graph that is lowered, for its target."""


def rewrite(
    rewrites: tuple[Rewrite, ...],
    subject: Subject,
    recorder: Recorder | None = None,
    *,
    stage: str,
    graph: str = "",
) -> int:
    """Run those that apply, in order, and return the number of changes: a changed module has to be
    recompiled before it is called. Each change is recorded as a pass of `stage` over `graph`, by
    default this thread's current graph."""
    watched = None if recorder is None or recorder.quiet else WatchedPasses(recorder)
    if watched is None:
        return sum(_run(one, subject) for one in rewrites)
    safely = Safely(watched.recorder, "our passes")
    outer = safely(watched.stage_starts, subject.module, stage, graph or current_graph_id())
    changes = 0
    try:
        for one in rewrites:
            running = safely(watched.pass_starts, subject.module, one.name)
            try:
                changes += _run(one, subject)
            finally:
                if running is not None:
                    safely(watched.ends, running)
    finally:
        if outer is not None:
            safely(watched.ends, outer)
    return changes


def _run(one: Rewrite, subject: Subject) -> int:
    return one.change(subject) if one.applies(subject) and _chosen(one, subject) else 0


def _chosen(one: Rewrite, subject: Subject) -> bool:
    if one.candidates is None or subject.gate.silent:
        return True
    nodes = [node.name for node in one.candidates(subject.module.graph)]
    if not nodes:
        return False
    chosen = choose(
        subject,
        kind="pass",
        about=one.name,
        nodes=nodes,
        choices=(APPLY, SKIP),
        default=APPLY,
        rule="rewrite",
        reason=one.sentence,
        means="the ATen graph as it was",
    )
    return chosen == APPLY
