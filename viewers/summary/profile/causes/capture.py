"""Work that only one side does: a region without eager operations, dtypes, recomputation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tcw.compiler.trace.matching import base_graph
from tcw.compiler.trace.records import Partition
from tcw.viewers.labels import is_view
from tcw.viewers.summary.profile.causes.cause import Cause, cause_of
from tcw.viewers.summary.profile.causes.step_words import named, operations_text
from tcw.viewers.summary.profile.index import Index
from tcw.viewers.summary.profile.rows import RegionRow
from tcw.viewers.words import bytes_text, listed, plural

_CONVERSIONS = ("_to_copy", "convert_element_type", "to copy", "convert element type")


def only_captured(index: Index, rows: Sequence[RegionRow]) -> Iterable[Cause]:
    """Rows for which eager runs nothing."""
    for row in rows:
        if row.operations or row.standing != "lost":
            continue
        outside = all(step.kind == "eager" for step in row.steps)
        kernels = [k for step in row.steps if (k := index.kernel_of(step)) is not None]
        converts = any(
            word in k.label or word in k.origins for k in kernels for word in _CONVERSIONS
        )
        what = "a dtype conversion" if converts else row.label
        size = row.compiled_work.bytes
        notes = (f"{bytes_text(size)} moved",) if size is not None else ()
        yield cause_of(
            row,
            kind="capture",
            title=f"{what} outside all graphs, only in the compiled call"
            if outside
            else f"{what} exists only under capture",
            notes=(*notes, f"{named(step.name for step in row.steps)}; eager runs nothing for it"),
        )


def recomputed(index: Index, rows: Sequence[RegionRow]) -> Iterable[Cause]:
    """Kernels of a backward that recompute part of the forward. A line that merely shares a region
    with such a part does not count: it may contain several calls."""
    chosen = {
        (split.backward, value.node): value
        for split in index.recording.all(Partition)
        for value in split.values
        if value.choice == "recomputed" and not _moves_nothing(index, split.backward, value.node)
    }
    for row in rows:
        if row.phase != "backward" or row.standing != "lost":
            continue
        computed = {
            (base_graph(kernel.graph), name)
            for step in row.steps
            if (kernel := index.kernel_of(step)) is not None
            for name in kernel.origins
        }
        mine = [value for node, value in chosen.items() if node in computed]
        if not mine:
            continue
        known = [value.bytes for value in mine if value.bytes is not None]
        saved = f"; {bytes_text(sum(known))} less is saved" if known else ""
        yield cause_of(
            row,
            kind="recomputed",
            title=f"the backward computes {listed([value.node for value in mine])} of the forward "
            f"again{saved}",
            notes=tuple(dict.fromkeys(value.reason for value in mine if value.reason)),
        )


def _moves_nothing(index: Index, graph: str, name: str) -> bool:
    """Whether a node of a graph is a view, or a constant, which cost nothing to recompute."""
    node = index.recording.nodes(graph).get(name)
    if node is None:
        return False
    return is_view(node) or (node.op == "call_function" and not node.inputs)


_GONE = {
    False: "is not in the compiled code",
    True: "has no step of its own in the compiled call",  # a sum of gradients may be in another one
}


def removed(index: Index, rows: Sequence[RegionRow]) -> Iterable[Cause]:
    """What compiling removed."""
    for row in rows:
        count = sum(operation.launches for operation in row.operations)
        if row.steps or row.standing != "won" or not count:
            continue
        launches = plural(count, "launch")
        yield cause_of(
            row,
            kind="removed",
            title=f"{row.label} {_GONE[row.phase == 'backward']}",
            notes=(f"{launches} fewer: {operations_text(row.operations)}",),
        )
