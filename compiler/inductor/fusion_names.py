"""Names of scheduler nodes that are stable across runs: those of the FX nodes that they compute.

`op9` counts what was lowered before it; `amax` does not. An override and a `FusionPair` name a pair
by these. If one FX node became several scheduler nodes (`var_mean` on the CPU becomes three), the
later ones are `var_mean.2`, `var_mean.3`, in schedule order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tcw.compiler.inductor.lowered_graphs import Lowering


def name_nodes(nodes: Iterable[Any], lowering: Lowering) -> None:
    """Name the scheduler's initial nodes; those already named keep their name."""
    for node in nodes:
        for member in node.get_nodes():
            operation = member.get_name()
            if operation in lowering.names:
                continue
            origins = lowering.operations.get(operation, ())
            realised = lowering.realised.get(operation, "")
            word = realised if realised in origins else origins[-1] if origins else operation
            count = lowering.name_uses[word] = lowering.name_uses.get(word, 0) + 1
            lowering.names[operation] = word if count == 1 else f"{word}.{count}"


def pair_names(first: Any, second: Any, lowering: Lowering) -> tuple[str, str]:
    """The two nodes that stand for a pair of groups, in schedule order.

    These are the first two of which one reads what the other writes, else the first two that touch
    a common buffer, else the first of each group.
    """
    one, two = first.get_nodes(), second.get_nodes()
    if len(one) == len(two) == 1:
        carrying = one[0], two[0]
    else:
        carrying = _edge(one, two) or _edge(two, one) or _common(one, two) or (one[0], two[0])
    names = lowering.names
    operations = sorted(
        (node.get_name() for node in carrying), key=lambda name: _place(name, lowering)
    )
    left, right = (names.get(operation, operation) for operation in operations)
    return left, right


def names_between(
    scheduler: Any, first: Any, second: Any, lowering: Lowering, most: int
) -> dict[str, str]:
    """The nodes that compute what `second` reads and need what `first` writes, in schedule order:
    scheduler node (`op7`) -> its name.

    The search starts at `second`; it ends with the first `most` that it finds.
    """
    inside = {*first.get_operation_names(), *second.get_operation_names()}
    sources = first.get_operation_names()
    found: dict[str, None] = {}
    waiting = [second]
    for node in waiting:
        for dependency in node.unmet_dependencies:
            buffer = scheduler.name_to_buf.get(dependency.name)
            operation = buffer.defining_op_name() if buffer is not None else ""
            supplier = scheduler.name_to_fused_node.get(operation)
            if supplier is None or operation in found or operation in inside:
                continue
            if not any(name in supplier.ancestors for name in sources):
                continue
            found[operation] = None
            if len(found) == most:
                return _named(found, lowering)
            waiting.append(supplier)
    return _named(found, lowering)


def _named(operations: Iterable[str], lowering: Lowering) -> dict[str, str]:
    ordered = sorted(operations, key=lambda name: _place(name, lowering))
    return {operation: lowering.names.get(operation, operation) for operation in ordered}


def _place(operation: str, lowering: Lowering) -> int:
    places = lowering.places
    if len(places) != len(lowering.names):
        places.clear()
        places.update({name: place for place, name in enumerate(lowering.names)})
    return places.get(operation, len(places))


def _edge(producers: list[Any], readers: list[Any]) -> tuple[Any, Any] | None:
    return _first_pair(producers, readers, lambda node: node.writes, lambda node: node.reads)


def _common(one: list[Any], two: list[Any]) -> tuple[Any, Any] | None:
    def touched(node: Any) -> Any:
        return node.reads_and_writes()

    return _first_pair(one, two, touched, touched)


def _first_pair(
    one: list[Any], two: list[Any], touched: Callable[[Any], Any], wanted: Callable[[Any], Any]
) -> tuple[Any, Any] | None:
    """The first node of `two` that wants a buffer touched by one of `one`, after that one."""
    touching = {
        dependency.name: node for node in reversed(one) for dependency in touched(node.read_writes)
    }
    return next(
        (
            (touching[dependency.name], other)
            for other in two
            for dependency in wanted(other.read_writes)
            if dependency.name in touching
        ),
        None,
    )
