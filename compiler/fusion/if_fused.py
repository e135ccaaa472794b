"""A preview of fusing two groups, for interactive decisions: nothing is merged."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

from tcw.compiler.fusion.build_nest import nest
from tcw.compiler.fusion.dependencies import Computation
from tcw.compiler.fusion.groups import Group, Space, final_space
from tcw.compiler.fusion.merge import Grouping, Merge
from tcw.compiler.fusion.rules import Refusal
from tcw.compiler.fusion.rules.domain import common_space, readable
from tcw.compiler.loops.graph import Call, Compute, Store
from tcw.compiler.loops.nest import Nest, reads_in
from tcw.compiler.loops.printer import INDENT, NestLine, nest_lines, nest_text
from tcw.compiler.loops.printer.print_addresses import escaped

NAME = "if_fused"
"""What the nest is called in the printed text."""


def if_fused(grouping: Grouping, one: Group, two: Group, merge: Merge) -> str:
    """The loop nest of both groups as printed text."""
    places = sorted((*one.places, *two.places))
    members = [u for p in places if not isinstance(u := grouping.order.nodes[p], Call)]
    group = Group(one.id, places, members, merge.space, [*one.names, *two.names])
    return nest_text(_nest(grouping, group))


def if_it_were_legal(grouping: Grouping, one: Group, two: Group, refusal: Refusal) -> str:
    """Both groups in the outer loops that they have in common, one after the other.

    `✗ RULE: reads VALUE` follows each read that the rule is about. If it is about none, `✗ RULE:
    REASON` follows the line at which the second group leaves the common loops. Assembled as text,
    since there is no such nest.
    """
    nests = [
        _nest(grouping, Group(group.id, group.places, group.members, group.space))
        for group in (one, two)
    ]
    first, second = (list(nest_lines(each)) for each in nests)
    heads = takewhile(lambda line: line.statement is None, second)
    shared = 0
    for inside, head in zip(_open_loops(first), heads, strict=False):
        if inside.text != head.text:
            break
        shared += 1
    values = list(dict.fromkeys(_forbidden_reads(grouping, one, two, refusal)))
    label = " + ".join(escaped(each.label) for each in nests if each.label)
    parts = first, second[shared:]
    ours, theirs = (_marked(lines, values, refusal.rule) for lines in parts)
    if len(ours) + len(theirs) == sum(map(len, parts)):
        leaves = parts[1][0]
        depth = leaves.depth + (leaves.statement is None)
        theirs.insert(1, f"{INDENT * (depth + 1)}✗ {refusal.rule}: {escaped(refusal.reason)}")
    return "\n".join((f"{NAME}: {label}", *ours, *theirs)) + "\n"


def _nest(grouping: Grouping, group: Group) -> Nest:
    group.space = final_space(
        group, grouping.weights.machine.near, grouping.weights.accumulators(group.space.riders)
    )
    return nest(group, NAME, frozenset(_stored(grouping, group)))


def _open_loops(lines: Iterable[NestLine]) -> list[NestLine]:
    """The loops around the last of the lines, outermost first."""
    opened: list[NestLine] = []
    for line in lines:
        del opened[line.depth :]
        if line.statement is None:
            opened.append(line)
    return opened


def _forbidden_reads(grouping: Grouping, one: Group, two: Group, refusal: Refusal) -> Iterable[str]:
    """The values that one of the two reads where the nest would not have them."""
    if refusal.rule == "cycle":
        between = grouping.reach.between(one.id, two.id)
        nodes = (u for place, u in enumerate(grouping.order.nodes) if between >> place & 1)
        return [name for node in nodes for name in _made(node)]
    if refusal.rule == "barrier":
        return [node.buffer for node in (*one.members, *two.members) if isinstance(node, Store)]
    edges = grouping.between(one, two)
    space = common_space(one, two, edges, grouping.weights, grouping.edges)
    if isinstance(space, Space):
        edges = [edge for edge in edges if readable(edge, space) is not None]
    return [edge.producer.name for edge in edges]


def _made(node: Computation) -> list[str]:
    """The values that a node computes."""
    if isinstance(node, Call):
        return [result.name for result in node.results if result is not None]
    return [node.name]


def _marked(lines: Iterable[NestLine], values: list[str], rule: str) -> list[str]:
    """The lines, and `✗ RULE: reads VALUE` below each that reads one of the values."""
    marked = []
    for line in lines:
        marked.append(line.text)
        own = [line.statement] if line.statement is not None else []
        read = {part.buffer for part in reads_in(own)}
        found = [escaped(value) for value in values if value in read]
        if found:
            marked.append(f"{INDENT * (line.depth + 1)}✗ {rule}: reads {', '.join(found)}")
    return marked


def _stored(grouping: Grouping, group: Group) -> Iterable[str]:
    """Values of the group that would be in memory (see `memories.stored_values`)."""
    inside = set(group.places)
    for place, member in zip(group.places, group.members, strict=True):
        if isinstance(member, Store):
            yield member.buffer
        elif member.name in grouping.fixed or any(
            edge.reader_place not in inside or edge.relation.kind == "gather"
            for edge in grouping.edges.of_producer[place]
        ):
            yield member.name


def origins_of(members: Iterable[Compute]) -> tuple[str, ...]:
    """The lowered graph's nodes that these members compute, without duplicates."""
    return tuple(dict.fromkeys(origin for member in members for origin in member.origins))
