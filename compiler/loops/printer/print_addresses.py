"""Names, sizes and addresses as text."""

from __future__ import annotations

from collections.abc import Sequence

from tcw.compiler.loops.expressions import Address
from tcw.compiler.loops.layouts import Layout, Shape, View, row_major, strides_over
from tcw.compiler.loops.sizes import Size, at_least, multiply, terms

LETTERS = "ijklmnpqrst"
COMMENT_COLUMN = 76
STORE_SIGNS = {"set": "=", "add": "+=", "mul": "*=", "maximum": "maximum=", "minimum": "minimum="}
"""The sign between the element that a store writes and its value, by mode."""


def escaped(name: str) -> str:
    """The name with backslash escapes for non-printable characters."""
    if name.isprintable():
        return name
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


def axis_name(axis: int) -> str:
    """i, j, k, …; beyond the letters i11, i12, …"""
    return LETTERS[axis] if axis < len(LETTERS) else f"i{axis}"


def times(size: Size, name: str) -> str:
    """`name`, `5*name`, `(s0 + 1)*name`."""
    if size == 1:
        return name
    text = str(size)
    return f"({text})*{name}" if len(terms(size)) > 1 else f"{text}*{name}"


def formula(strides: Sequence[Size], offset: Size) -> str:
    """`5*i + j + 3`."""
    names = (axis_name(axis) for axis in range(len(strides)))
    text = ""
    for stride, name in (*zip(strides, names, strict=True), (offset, "")):
        if stride == 0:
            continue
        negative = at_least(0, stride)
        size = multiply(stride, -1) if negative else stride
        part = times(size, name) if name else str(size)
        if not text:
            text = f"-{part}" if negative else part
        else:
            text += f" - {part}" if negative else f" + {part}"
    return text or "0"


def address_text(address: Address) -> str:
    """The element that a nest's address refers to. Layouts that need division wrap the formula."""
    return through(address.then, formula(address.strides, address.offset))


def view_text(view: View, domain: Shape) -> str:
    """The element that a view of a value graph refers to, in terms of the domain's digits."""
    if not view:
        return position_text(domain)
    strides = strides_over(view[-1], domain)
    if strides is None:
        return through(view, position_text(domain))
    return through(view[:-1], formula(strides, view[-1].offset))


def position_text(domain: Shape) -> str:
    """The flat index of a domain: `5*i + j`."""
    widths = zip(domain, row_major(domain).strides, strict=True)
    return formula([0 if size == 1 else width for size, width in widths], 0)


def through(view: Sequence[Layout], text: str) -> str:
    """`(4,3):(1,4) of (2,6):(1,2) of 5*i + j`: the layout closest to the index applies first."""
    return " of ".join([*map(str, view), text])


def shape_text(shape: Shape) -> str:
    return f"[{', '.join(map(str, shape))}]"


def with_comment(line: str, origins: Sequence[str]) -> str:
    """The line, followed by a comment with the ATen nodes that it computes."""
    if not origins:
        return line
    return f"{line:<{COMMENT_COLUMN}}  # {', '.join(map(escaped, origins))}"
