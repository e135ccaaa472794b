"""Addresses as C text: products with strides, and chains of layouts with division and remainder."""

from __future__ import annotations

from tcw.compiler.loops.layouts import View, normalize
from tcw.compiler.loops.sizes import Size, c_expression, product


def step_text(step: Size) -> str:
    """A stride as an operand."""
    text = c_expression(step)
    return f"({text})" if text.startswith("-") else text


def product_text(index: str, stride: Size) -> str:
    """The text of index * stride; empty for 0."""
    if stride == 0 or index == "0":
        return ""
    if stride == 1:
        return index
    if " " in index and not (index.startswith("(") and index.endswith(")")):
        index = f"({index})"
    return f"{index} * {step_text(stride)}"


def chain_lines(view: View, start: str) -> tuple[list[str], str]:
    """Statements and the expression of view(start). Layouts apply last to first."""
    lines: list[str] = []
    text = start
    for number, layout in enumerate(reversed(view)):
        name = f"flat_{number}" if number else "flat"
        lines.append(f"const long {name} = {text};")
        normal = normalize(layout)
        parts = [c_expression(normal.offset)] if normal.offset != 0 else []
        for place, (size, stride) in enumerate(zip(normal.shape, normal.strides, strict=True)):
            width = product(normal.shape[place + 1 :])
            digit = name if width == 1 else f"{name} / {_operand(width)}"
            if place:
                digit = f"{digit} % {_operand(size)}"
            part = product_text(digit if digit == name else f"({digit})", stride)
            if part:
                parts.append(part)
        text = " + ".join(parts) or "0"
    return lines, text


def _operand(size: Size) -> str:
    text = c_expression(size)
    return text if text.isalnum() or text.startswith("(") else f"({text})"
