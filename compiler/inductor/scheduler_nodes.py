"""The scheduler's initial nodes and its final groups.

torch/_inductor/scheduler.py: `Scheduler.fuse_nodes` receives the initial nodes, in order.
"""

from __future__ import annotations

from typing import Any

from tcw.compiler.control.hooks import RecordingHook, Uninstall, before_call
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.engine.recording import current as listening
from tcw.compiler.graphs.labels import copy_label, node_label
from tcw.compiler.graphs.tensors import size
from tcw.compiler.inductor.fusion_names import name_nodes
from tcw.compiler.inductor.loop_bodies import nest_of
from tcw.compiler.inductor.lowered_graphs import Lowering, lowering_of
from tcw.compiler.trace.records import FusionGroup, SchedulerNode, Size


def install(recorder: Recorder) -> Uninstall:
    from torch._inductor.scheduler import Scheduler
    from torch._inductor.virtualized import V

    safely = Safely(recorder, HOOK.name, even_quiet=True)

    def write(scheduler: Any, nodes: Any, *_: Any, **__: Any) -> None:
        if recorder.quiet and not listening().gate.overrides:
            return
        lowering = lowering_of(recorder, V.graph)
        for node in nodes:
            note_node(node, lowering)
            if not recorder.quiet:
                recorder.emit(scheduler_node_record(node, lowering))
        name_nodes(nodes, lowering)

    return before_call(Scheduler, "fuse_nodes", safely.guarded(write))


_KINDS = {
    "NopKernelSchedulerNode": "nop",
    "ForeachKernelSchedulerNode": "foreach",
    "GroupedSchedulerNode": "grouped",
}


def kind_of(node: Any) -> str:
    """`pointwise`, `reduction`, `scan`, `extern`, `template`, `nop`, `foreach` or `grouped`; for a
    fused node, that of its strongest member."""
    kind = _KINDS.get(type(node).__name__)
    if kind is not None:
        return kind
    for kind in ("template", "extern", "split_scan", "reduction"):
        if getattr(node, f"is_{kind}")():
            return kind.removeprefix("split_")
    data = getattr(getattr(node, "node", None), "data", None)
    return "scan" if type(data).__name__ in ("Scan", "SplitScan") else "pointwise"


def computed_by(node: Any) -> list[Any]:
    """The distinct FX nodes that a scheduler node computes, from its IR.

    torch also gives a library call the origins of its inputs, which other nodes compute. Such a
    call computes only its own node.
    """
    found: dict[Any, None] = {}
    for member in node.get_nodes():
        ir = getattr(member, "node", None)
        if ir is None:
            continue
        own = None
        if member.is_extern():
            own = ir.get_origin_node() or getattr(ir, "fx_node", None)
        for origin in (own,) if own is not None else ir.get_origins():
            found[origin] = None
    return list(found)


def domain_of(node: Any) -> tuple[Size, ...]:
    """Iteration sizes, then reduction sizes, as the backend groups them; () for a call."""
    group = getattr(node, "group", None)
    if not group:
        return ()
    flat: list[Size] = []
    for part in group[1]:
        if isinstance(part, (tuple, list)):
            flat.extend(map(size, part))
        else:
            flat.append(size(part))
    return tuple(flat)


def note_node(node: Any, lowering: Lowering) -> None:
    """Note what an initial scheduler node computes, for later hooks."""
    name = node.get_name()
    nodes = sorted_nodes(computed_by(node), lowering)
    body = getattr(node, "_body", None)
    text = node_label(nodes)
    if hasattr(body, "root_block") and is_copy(body):
        text = copy_label(text)
    lowering.operations[name] = tuple(found.name for found in nodes)
    lowering.labels[name] = text
    realised = node.node.get_origin_node() if getattr(node, "node", None) is not None else None
    if realised is not None:
        lowering.realised[name] = realised.name


def scheduler_node_record(node: Any, lowering: Lowering) -> SchedulerNode:
    """One initial scheduler node as a record; call `note_node` first."""
    name = node.get_name()
    body = getattr(node, "_body", None)
    reads_writes = node.read_writes
    kind = kind_of(node)
    read, written = _touched(node, reads=True), _touched(node, reads=False)
    return SchedulerNode(
        graph=lowering.id,
        name=name,
        kind=kind,
        origins=lowering.operations[name],
        label=lowering.labels[name] or kind,
        domain=domain_of(node),
        reads=tuple(dict.fromkeys(dependency.name for dependency in reads_writes.reads)),
        writes=tuple(dict.fromkeys(dependency.name for dependency in reads_writes.writes)),
        read_bytes=None if read is None else sum(read.values()),
        write_bytes=None if written is None else sum(written.values()),
        touched={**(read or {}), **(written or {})},
        parts={} if read is None else _parts(reads_writes.reads, lowering),
        nest=nest_of(body) if hasattr(body, "root_block") else (),
        device=str(node.get_device() or "cpu"),
    )


def is_copy(body: Any) -> bool:
    """Whether a loop body only moves data."""
    return {node.target for node in body.root_block.graph.nodes if node.op == "call_method"} == {
        "load",
        "store",
    }


def sorted_nodes(nodes: list[Any], lowering: Lowering) -> list[Any]:
    """The nodes that are in the lowered graph, in its order."""
    positions = lowering.positions
    return sorted((node for node in nodes if node in positions), key=positions.__getitem__)


def _touched(node: Any, *, reads: bool) -> dict[str, int] | None:
    """Inductor's own count of the bytes that a node touches in each buffer; None if its sizes are
    symbolic or Inductor cannot count."""
    if any(isinstance(size, str) for size in domain_of(node)):
        return None
    try:
        found = node.get_read_write_buffer_accesses(include_reads=reads, include_writes=not reads)
        return {str(name): int(count) for name, count in found.items()}
    except Exception:  # torch refuses for some library calls
        return None


def _parts(reads: Any, lowering: Lowering) -> dict[str, int]:
    """For each buffer, a number that identifies the set of index expressions it is read at."""
    places: dict[str, set[Any]] = {}
    for dependency in reads:
        if type(dependency).__name__ == "MemoryDep":
            places.setdefault(dependency.name, set()).add(dependency.index)
    return {
        name: lowering.parts.setdefault((name, frozenset(place)), len(lowering.parts) + 1)
        for name, place in places.items()
    }


def group_of(node: Any, lowering: Lowering) -> FusionGroup:
    """One final node of the scheduler as a group."""
    members = tuple(member.get_name() for member in node.get_nodes())
    kind = kind_of(node)
    return FusionGroup(
        name=node.get_name(),
        nodes=members,
        kind=kind,
        label=node_label(sorted_nodes(computed_by(node), lowering)) or kind,
    )


_SCHEDULER = "torch._inductor.scheduler:Scheduler"
_NODE = "torch._inductor.scheduler:BaseSchedulerNode"

HOOK = RecordingHook(
    name="scheduler nodes",
    offers="the nodes that the scheduler starts with: domain, buffers, bytes, loop body",
    needs=(
        f"{_SCHEDULER}.fuse_nodes",
        f"{_NODE}.get_nodes",
        f"{_NODE}.get_read_write_buffer_accesses(include_reads, include_writes)",
    ),
    install=install,
    stage="lowering",
    test="inductor/test_whole.py",
)
