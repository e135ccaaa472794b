"""16-bit floats and booleans that a nest only moves: their bits stay as they are, as integers.

Registers hold 16-bit floats as float32, and booleans as masks of int32. Widening and rounding cost
up to ten instructions a vector, which a copy, a gather or a scatter has no use for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tcw.compiler.codegen.cpp.vocabulary.types import BITS, bits_of
from tcw.compiler.loops.expressions import Const, Expression, Local, Read, ReadIndexed
from tcw.compiler.loops.nest import Let, Nest, Statement, Write, expressions


def as_bits(nest: Nest, dtypes: Mapping[str, str]) -> tuple[Nest, Mapping[str, str]]:
    """The nest with the values that it only moves as integers, and the dtypes of its buffers.

    A value and the memory that it is read from or written to are integers together, or not at all.
    """
    together: dict[str, str] = {}
    computed: set[str] = set()

    def first(name: str) -> str:
        while together.get(name, name) != name:
            name = together[name]
        return name

    for statement in nest.statements:
        own, source = _own(statement), _moved(statement)
        moves = source is not None or _is_number(statement)
        if own is not None and not moves:
            computed.add(own)
        if own is not None and source is not None:
            together[first(source)] = first(own)
        computed.update(_computed_with(statement, source))
    kept = {first(name) for name in computed}
    names = {name for name in _all(nest) if first(name) not in kept}
    if not any(name.startswith(_memory("")) for name in names):
        return nest, dtypes
    statements = tuple(_rewritten(statement, names) for statement in nest.statements)
    found = {b: BITS[dtype] if _memory(b) in names else dtype for b, dtype in dtypes.items()}
    return replace(nest, statements=statements), found


def _memory(buffer: str) -> str:
    return f"memory {buffer}"


def _local(name: str) -> str:
    return f"local {name}"


def _own(statement: Statement) -> str | None:
    """Where a statement puts such a value; None for other values."""
    if statement.dtype not in BITS:
        return None
    if isinstance(statement, Write):
        return _memory(statement.buffer)
    return _local(statement.name)


def _moved(statement: Statement) -> str | None:
    """The source of such a value that a statement only moves; None if it does more."""
    same = statement.expression.dtype == statement.dtype
    if not same or not isinstance(statement, (Let, Write)):
        return None
    adds = isinstance(statement, Write) and statement.mode != "set"
    return None if adds else _source(statement.expression)


def _is_number(statement: Statement) -> bool:
    return isinstance(statement, (Let, Write)) and isinstance(statement.expression, Const)


def _source(expression: Expression) -> str | None:
    """The source of an expression that only moves such a value; None for other expressions."""
    if expression.dtype not in BITS:
        return None
    if isinstance(expression, (Read, ReadIndexed)):
        return _memory(expression.buffer)
    return _local(expression.name) if isinstance(expression, Local) else None


def _computed_with(statement: Statement, moved: str | None) -> Iterator[str]:
    """The values with which a statement does more than move them."""
    if isinstance(statement, Write) and statement.mode != "set":
        yield _memory(statement.buffer)
    for part in expressions(statement):
        source = _source(part)
        if source is not None and (moved is None or part is not statement.expression):
            yield source


def _all(nest: Nest) -> Iterable[str]:
    for statement in nest.statements:
        own = _own(statement)
        if own is not None:
            yield own
        for part in expressions(statement):
            source = _source(part)
            if source is not None:
                yield source


def _rewritten(statement: Statement, names: set[str]) -> Statement:
    if _own(statement) not in names:
        return statement
    value, dtype = statement.expression, statement.dtype
    bits = BITS[dtype]
    new: Expression
    if isinstance(value, Const):
        new = Const(bits_of(value.number, dtype), bits)
    elif isinstance(value, ReadIndexed) and value.otherwise is not None:
        new = replace(value, dtype=bits, otherwise=bits_of(value.otherwise, value.dtype))
    else:
        assert isinstance(value, (Read, ReadIndexed, Local))
        new = replace(value, dtype=bits)
    return replace(statement, dtype=bits, expression=new)
