"""Segments: runs of nests as C functions, with what they take, give and keep in their arena."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from compiler.loops.expressions import (
    Address,
    Expression,
    Position,
    Read,
    ReadIndexed,
    SizeOf,
    rewrite,
)
from compiler.loops.graph import Operand
from compiler.loops.nest import Nest, Statement, Write, expressions
from compiler.loops.sizes import Size, symbols_of
from compiler.memory.accesses import Values, access
from compiler.memory.lifetimes import Timeline
from compiler.memory.plan import InArena, New, Placement, Segment, TakesOver


def segment(
    name: str,
    places: range,
    values: Values,
    timeline: Timeline,
    placements: Mapping[str, Placement],
    arena_bytes: Size,
) -> Segment:
    """The segment of the nests at these places of the timeline."""
    nests = [run for run in timeline.runs[places.start : places.stop] if isinstance(run, Nest)]
    accessed: dict[str, None] = {}
    gives: list[str] = []
    for place, nest in zip(places, nests, strict=True):
        one = access(nest)
        accessed.update(dict.fromkeys((*one.reads, *one.writes)))
        for value in one.writes:
            inside = isinstance(placements.get(home(value, placements)), InArena)
            if timeline.values[value].first == place and value in placements and not inside:
                gives.append(value)
    made = {value for value in gives if isinstance(placements[value], New)}
    takes: dict[str, None] = {}
    symbols: set[str] = set(symbols_of(arena_bytes))
    for value in accessed:
        root = home(value, placements)
        placement = placements.get(root)
        if isinstance(placement, InArena):
            symbols |= symbols_of(placement.offset)
        elif root not in made:
            takes[root] = None
        symbols |= {name for size in _form_sizes(value, values) for name in symbols_of(size)}
    for nest in nests:
        symbols |= {name for size in sizes_of(nest) for name in symbols_of(size)}
    order = [*values.program.graph.parameters, *values.program.graph.symbols]
    return Segment(
        name,
        tuple(in_place(nest, placements) for nest in nests),
        tuple(takes),
        tuple(gives),
        tuple(name for name in order if name in symbols),
        arena_bytes,
    )


def home(value: str, placements: Mapping[str, Placement]) -> str:
    """The value whose memory it is: the first of a chain of those that took it over."""
    while isinstance(placement := placements.get(value), TakesOver):
        value = placement.value
    return value


def in_place(nest: Nest, placements: Mapping[str, Placement]) -> Nest:
    """The nest with reads of what it overwrites under the name of what it writes there."""
    over: dict[str, str] = {}
    for value in nest.writes():
        placement = placements.get(value)
        if isinstance(placement, TakesOver) and placement.in_place:
            over[placement.value] = value
    reads = set(nest.reads())
    over = {read: written for read, written in over.items() if read in reads}
    if not over:
        return nest

    def leaf(part: Expression) -> Expression:
        if isinstance(part, Read) and part.buffer in over:
            return replace(part, buffer=over[part.buffer])
        return part

    return replace(
        nest,
        statements=tuple(_rewritten(statement, leaf) for statement in nest.statements),
        in_place=tuple((written, read) for read, written in over.items()),
    )


def _rewritten(statement: Statement, leaf: Callable[[Expression], Expression]) -> Statement:
    expression = rewrite(statement.expression, leaf)
    if isinstance(statement, Write):
        terms = tuple(replace(t, index=rewrite(t.index, leaf)) for t in statement.terms)
        return replace(statement, expression=expression, terms=terms)
    return replace(statement, expression=expression)


def sizes_of(nest: Nest) -> Iterator[Size]:
    """Every size that its text holds."""
    yield from (axis.size for axis in nest.axes)
    for statement in nest.statements:
        if isinstance(statement, Write):
            yield from _address_sizes(statement.address)
            for term in statement.terms:
                yield from (term.size, term.stride)
        for part in expressions(statement):
            if isinstance(part, SizeOf):
                yield part.size
            elif isinstance(part, (Read, ReadIndexed, Position)):
                yield from _address_sizes(part.address)
                if isinstance(part, ReadIndexed):
                    for term in part.terms:
                        yield from (term.size, term.stride)


def _address_sizes(address: Address) -> Iterator[Size]:
    yield from address.strides
    yield address.offset
    for layout in address.then:
        yield from (*layout.shape, *layout.strides, layout.offset)


def _form_sizes(value: str, values: Values) -> Iterator[Size]:
    """Sizes and strides of the tensors that are made on a value's memory."""
    memory = values.program.memories.get(value)
    if memory is not None:
        yield from memory.shape
        yield memory.size
    else:
        form = values.inputs[value] if value in values.inputs else values.results[value][1]
        yield from (*form.shape, *form.strides)
    for output in values.program.graph.outputs:
        if isinstance(output, Operand) and output.value == value:
            yield from (*output.shape, *output.strides, output.offset)
