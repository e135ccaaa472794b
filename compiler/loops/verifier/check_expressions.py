"""Rules for expressions: arity and dtypes of operators, constants, which leaves are allowed."""

from __future__ import annotations

from collections.abc import Callable

from tcw.compiler.loops.dtypes import BYTES, FLOATS, INTEGERS
from tcw.compiler.loops.expressions import Const, Expression, Gather, Op, ReadIndexed, SizeOf
from tcw.compiler.loops.operators import OPERATORS
from tcw.compiler.loops.verifier.spaces import Numbers, require

WHOLE_OR_BOOL = frozenset({"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"})
WHOLE = frozenset({"shift_left", "shift_right"})
ANY_NUMBER = frozenset(
    [
        "add",
        "sub",
        "mul",
        "neg",
        "abs",
        "fma",
        "floor_divide",
        "trunc_divide",
        "remainder",
        "fmod",
        "pow",
        "sign",
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "floor",
        "ceil",
        "trunc",
        "round",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "isnan",
        "isinf",
        "signbit",
        "where",
        "convert",
    ]
)
"""All other operators take only floats."""


def check_dtype(dtype: str, where: str) -> None:
    require(dtype in BYTES, where, f"loops do not support dtype {dtype}")


def check_expression(
    expression: Expression,
    numbers: Numbers,
    check_leaf: Callable[[Expression, str], None],
    where: str,
) -> None:
    """Raises Malformed if the expression breaks a rule. `check_leaf` checks its leaves."""
    check_dtype(expression.dtype, where)
    if isinstance(expression, Op):
        for argument in expression.args:
            check_expression(argument, numbers, check_leaf, where)
        _check_operator(expression, where)
    elif isinstance(expression, Const):
        _check_constant(expression, where)
    elif isinstance(expression, SizeOf):
        numbers.check_symbols((expression.size,), where)
        require(expression.dtype == "int64", where, "a size is an int64")
    else:
        if isinstance(expression, (Gather, ReadIndexed)):
            for term in expression.terms:
                check_expression(term.index, numbers, check_leaf, where)
            if expression.otherwise is not None:
                _check_constant(Const(expression.otherwise, expression.dtype), where)
                require(
                    not any(term.wraps or term.checked for term in expression.terms),
                    where,
                    "an index out of range is not an error, since there is another element for it",
                )
        check_leaf(expression, where)


def _check_operator(expression: Op, where: str) -> None:
    name, dtypes = expression.name, [argument.dtype for argument in expression.args]
    require(name in OPERATORS, where, f"no operator is called {name}")
    operator = OPERATORS[name]
    require(
        len(dtypes) == operator.arity,
        where,
        f"{name} takes {operator.arity} arguments, got {len(dtypes)}",
    )
    if name == "convert":
        return
    if name == "where":
        require(dtypes[0] == "bool", where, f"where expects a bool, got {dtypes[0]}")
        dtypes = dtypes[1:]
    if operator.boolean:
        require(expression.dtype == "bool", where, f"{name} returns bool, not {expression.dtype}")
        require(len(set(dtypes)) == 1, where, f"{name} compares {' with '.join(dtypes)}")
        computed = dtypes[0]
    else:
        computed = expression.dtype
        require(
            all(dtype == computed for dtype in dtypes),
            where,
            f"{name} of {', '.join(dtypes)} returns {computed}: operators do not promote",
        )
    if name in WHOLE:
        allowed = computed in INTEGERS
    elif name in WHOLE_OR_BOOL:
        allowed = computed in INTEGERS or computed == "bool"
    else:
        allowed = name in ANY_NUMBER or computed in FLOATS
    require(allowed, where, f"{name} is not defined for {computed}")


def _check_constant(constant: Const, where: str) -> None:
    number, dtype = constant.number, constant.dtype
    fits = (
        isinstance(number, bool)
        if dtype == "bool"
        else dtype in FLOATS or (isinstance(number, int) and not isinstance(number, bool))
    )
    require(fits, where, f"the constant {number!r} is not of dtype {dtype}")
