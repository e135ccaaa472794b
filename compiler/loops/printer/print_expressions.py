"""Expressions as text: infix where that is usual in mathematics, otherwise calls by name."""

from __future__ import annotations

from tcw.compiler.loops.expressions import (
    Const,
    Expression,
    Gather,
    IndexTerm,
    Iota,
    Load,
    Local,
    Op,
    Position,
    Read,
    ReadIndexed,
    SizeOf,
)
from tcw.compiler.loops.layouts import Shape
from tcw.compiler.loops.printer.print_addresses import address_text, escaped, times, view_text
from tcw.compiler.loops.sizes import terms

INFIX = {
    "bitwise_or": ("|", 1),
    "bitwise_xor": ("^", 2),
    "bitwise_and": ("&", 3),
    "eq": ("==", 4),
    "ne": ("!=", 4),
    "lt": ("<", 5),
    "le": ("<=", 5),
    "gt": (">", 5),
    "ge": (">=", 5),
    "shift_left": ("<<", 6),
    "shift_right": (">>", 6),
    "add": ("+", 7),
    "sub": ("-", 7),
    "mul": ("*", 8),
    "div": ("/", 8),
}
"""Operator -> its sign and precedence."""
ATOM = 10
SIGN = 9


def expression_text(expression: Expression, domain: Shape = (), least: int = 0) -> str:
    """The text, parenthesised if its precedence is below `least`. `domain` is for value graphs."""
    text, strength = _text(expression, domain)
    return f"({text})" if strength < least else text


def _text(expression: Expression, domain: Shape) -> tuple[str, int]:
    if isinstance(expression, Op):
        return _operator(expression, domain)
    if isinstance(expression, Const):
        return constant_text(expression.number), ATOM if _positive(expression) else SIGN
    if isinstance(expression, SizeOf):
        return str(expression.size), 7 if len(terms(expression.size)) > 1 else 8
    if isinstance(expression, Local):
        return escaped(expression.name), ATOM
    if isinstance(expression, Iota):
        return f"index({view_text(expression.view, domain)})", ATOM
    if isinstance(expression, Position):
        return f"index({address_text(expression.address)})", ATOM
    if isinstance(expression, (Load, Gather)):
        place, name = view_text(expression.view, domain), expression.value
    else:
        place, name = address_text(expression.address), expression.buffer
    if isinstance(expression, (Gather, ReadIndexed)):
        place = with_terms(place, expression.terms, domain)
        if expression.otherwise is not None:
            place = f"{place} or else {constant_text(expression.otherwise)}"
    assert isinstance(expression, (Load, Gather, Read, ReadIndexed))
    return f"{escaped(name)}[{place}]", ATOM


def _operator(expression: Op, domain: Shape) -> tuple[str, int]:
    name, args = expression.name, expression.args
    if name in INFIX and len(args) == 2:
        sign, strength = INFIX[name]
        left = expression_text(args[0], domain, strength)
        right = expression_text(args[1], domain, strength + 1)
        return f"{left} {sign} {right}", strength
    if name == "neg":
        return f"-{expression_text(args[0], domain, SIGN)}", SIGN
    words = ", ".join(expression_text(argument, domain) for argument in args)
    return f"{expression.dtype if name == 'convert' else name}({words})", ATOM


def with_terms(place: str, terms: tuple[IndexTerm, ...], domain: Shape) -> str:
    """An address plus the contribution of its index terms."""
    parts = [] if place == "0" else [place]
    for term in terms:
        strength = 0 if term.stride == 1 and not parts else 7 if term.stride == 1 else SIGN
        parts.append(times(term.stride, expression_text(term.index, domain, strength)))
    return " + ".join(parts) or "0"


def constant_text(number: bool | int | float) -> str:
    return str(number).lower() if isinstance(number, bool) else repr(number)


def _positive(constant: Const) -> bool:
    return not repr(constant.number).startswith("-")
