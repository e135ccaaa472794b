"""16-bit floats stay float32 inside a nest: a rounding that is widened again is dropped, unless the
user asked for it (`rounded`).

ATen rounds each result to 16 bits because it stores it. If the next operation reads the register
instead, rounding costs five instructions and accuracy. It is retained before operations whose
result can flip with the last bit (comparisons, rounding to integers), which would otherwise differ
for values that are equal in eager.
"""

from __future__ import annotations

from dataclasses import replace

from tcw.compiler.loops.dtypes import INTEGERS, REDUCED
from tcw.compiler.loops.expressions import Expression, Local, Op, convert
from tcw.compiler.loops.nest import Let, Nest, Statement, Write, expressions
from tcw.compiler.loops.operators import OPERATORS

TURNS_OVER = frozenset(
    {"floor", "ceil", "trunc", "round", "sign", "floor_divide", "trunc_divide", "remainder", "fmod"}
) | frozenset(name for name, operator in OPERATORS.items() if operator.boolean)


def without_round_trips(nest: Nest) -> Nest:
    """The nest without conversions float32 -> 16 bits -> float32."""
    wide: dict[str, str] = {}
    """16-bit values of statements that also exist in float32 -> the float32 name."""
    stored: dict[str, str] = {}
    """The same for values that only a store may use unrounded, since it rounds by itself."""
    statements: list[Statement] = []
    changed = False
    for statement in nest.statements:
        expression = _argument(statement.expression, wide, False)
        changed |= expression is not statement.expression
        new = replace(statement, expression=expression)
        if isinstance(new, Write):
            terms = tuple(replace(term, index=_visit(term.index, wide)) for term in new.terms)
            new = replace(
                new, terms=terms, expression=_stored(expression, new.dtype, wide | stored)
            )
            changed |= new.expression is not expression
        rounding = _rounding(new) if isinstance(new, Let) else None
        if isinstance(new, Let) and rounding is not None:
            source = rounding.args[0]
            if source.dtype == "float32":
                name = f"{new.name}_wide"
                asked = rounding is not new.expression
                (stored if asked else wide)[new.name] = name
                statements.append(Let(name, "float32", source, new.axes, new.origins))
                rounded = convert(Local(name, "float32"), new.dtype)
                if asked:
                    rounded = Op("rounded", (rounded,), new.dtype)
                new = replace(new, expression=rounded)
        statements.append(new)
    if not changed:
        return nest
    return replace(nest, statements=tuple(_used(statements)))


def _stored(expression: Expression, dtype: str, wide: dict[str, str]) -> Expression:
    """The expression that a 16-bit write stores; the write rounds by itself."""
    if dtype not in REDUCED or expression.dtype != dtype:
        return expression
    if isinstance(expression, Local) and expression.name in wide:
        return Local(wide[expression.name], "float32")
    if isinstance(expression, Op) and expression.name == "rounded":
        (expression,) = expression.args
    if isinstance(expression, Op) and expression.name == "convert":
        return expression.args[0] if expression.args[0].dtype == "float32" else expression
    return expression


def _rounding(statement: Let) -> Op | None:
    """The conversion to 16 bits in a statement, possibly inside a `rounded`; None for others."""
    expression = statement.expression
    if isinstance(expression, Op) and expression.name == "rounded":
        (expression,) = expression.args
    if isinstance(expression, Op) and expression.name == "convert" and expression.dtype in REDUCED:
        return expression
    return None


def _visit(expression: Expression, wide: dict[str, str]) -> Expression:
    if not isinstance(expression, Op):
        return expression
    exact = expression.name in TURNS_OVER or (
        expression.name == "convert" and expression.dtype in INTEGERS
    )
    args = tuple(_argument(argument, wide, exact) for argument in expression.args)
    if all(new is old for new, old in zip(args, expression.args, strict=True)):
        return expression
    return replace(expression, args=args)


def _argument(argument: Expression, wide: dict[str, str], exact: bool) -> Expression:
    """`exact`: the reader of this argument must see the rounded value."""
    widens = isinstance(argument, Op) and argument.name == "convert" and argument.dtype == "float32"
    if not exact and isinstance(argument, Op) and widens and argument.args[0].dtype in REDUCED:
        return _widened(argument, wide)
    return _visit(argument, wide)


def _widened(argument: Op, wide: dict[str, str]) -> Expression:
    """convert:f32 of a 16-bit expression, without its rounding."""
    inner = argument.args[0]
    if isinstance(inner, Local) and inner.name in wide:
        return Local(wide[inner.name], "float32")
    if isinstance(inner, Op) and inner.name == "convert" and inner.args[0].dtype == "float32":
        return _argument(inner.args[0], wide, False)
    return _visit(argument, wide)


def _used(statements: list[Statement]) -> list[Statement]:
    """The statements without unused values."""
    kept: list[Statement] = []
    names: set[str] = set()
    for statement in reversed(statements):
        if isinstance(statement, Let) and statement.name not in names:
            continue
        kept.append(statement)
        names.update(part.name for part in expressions(statement) if isinstance(part, Local))
    return list(reversed(kept))
