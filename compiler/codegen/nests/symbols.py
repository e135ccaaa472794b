"""The symbols of a nest's sizes."""

from __future__ import annotations

from compiler.codegen.nests.simplify import addresses, index_terms
from compiler.loops.expressions import SizeOf
from compiler.loops.nest import Nest, expressions
from compiler.loops.sizes import Size, symbols_of


def symbols(nest: Nest) -> list[str]:
    """Symbols in a nest's sizes, in order of appearance."""
    found: dict[str, None] = {}

    def note(*sizes: Size) -> None:
        for size in sizes:
            found.update(dict.fromkeys(sorted(symbols_of(size))))

    note(*(axis.size for axis in nest.axes))
    for statement in nest.statements:
        for address in addresses(statement):
            note(*address.strides, address.offset)
            for layout in address.then:
                note(*layout.shape, *layout.strides, layout.offset)
        note(*(part.size for part in expressions(statement) if isinstance(part, SizeOf)))
        for term in index_terms(statement):
            note(term.size, term.stride)
    return list(found)
