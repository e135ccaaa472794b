"""Addresses as C text: products with strides, chains of layouts with division and remainder, and
indices read from memory.

Negative indices wrap, and out-of-range indices are reported.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.nests.code import Scope
from tcw.compiler.codegen.cpp.vocabulary import INDEX_OUT_OF_RANGE, SAYS, Lanes
from tcw.compiler.codegen.cpp.vocabulary.arithmetic import any_wide_lane
from tcw.compiler.loops.expressions import (
    Const,
    Expression,
    IndexTerm,
    Op,
    Read,
    ReadIndexed,
    SizeOf,
)
from tcw.compiler.loops.layouts import View, normalize
from tcw.compiler.loops.sizes import Size, c_expression, product

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.nests.vector_values import Values

OUT_OF_RANGE = """\
__attribute__((noinline, cold)) long out_of_range(long index, long size, int code, int* error) {
    int none = 0;
    if (__atomic_compare_exchange_n(error, &none, code, false, 0, 0)) {
        ((long*)error)[1] = index;
        ((long*)error)[2] = size;
    }
    return 0;
}"""


def checked_index(scope: Scope, text: str, term: IndexTerm) -> str:
    """The index of a term, wrapped and checked as the term requires."""
    if not (term.checked or term.wraps):
        return text
    if term.checked and scope.count is not None:
        text = scope.lanes.select_lanes(
            text, scope.lanes.constant(0, "int64"), scope.count, "int64"
        )
    function, arguments = _function(scope.lanes, term)
    return f"{function}({text}, {arguments})"


def checked_places(lanes: Lanes, pointer: str, beside: str, term: IndexTerm) -> str:
    """A pointer to a vector of indices: `pointer` itself, unless one of them has to be wrapped or
    reported. Then all are wrapped and checked into `beside`, which is returned."""
    if not (term.checked or term.wraps):
        return pointer
    function, arguments = _function(lanes, term)
    kind, name = lanes.type("int64"), f"{function}_places{lanes.suffix}"
    more = ", int code, int* error" if term.checked else ""
    passed = ", code, error" if term.checked else ""

    def text() -> str:
        return (
            f"INLINE const long* {name}(const long* index, long* beside, long size{more}) {{\n"
            f"    const {kind} given = {lanes.load('int64', 'index')};\n"
            f"    const auto outside = ({lanes.unsigned(8)})given >= (unsigned long)size;\n"
            f"    if (!__builtin_expect({any_wide_lane(lanes, 'outside')}, 0)) return index;\n"
            f"    {lanes.store('int64', 'beside', f'{function}(given, size{passed})')}\n"
            "    return beside;\n}"
        )

    lanes.need(name, text)
    return f"{name}({pointer}, {beside}, {arguments})"


def _function(lanes: Lanes, term: IndexTerm) -> tuple[str, str]:
    """The function that wraps and checks the index of a term, and its further arguments."""
    size = c_expression(term.size)
    if term.checked:
        code = INDEX_OUT_OF_RANGE | SAYS[term.says] << 4 | term.dim << 8
        name = "wrapped_checked" if term.wraps else "checked"
        _need_checked(lanes, name, term.wraps)
        return name, f"{size}, {code}, error"
    _need_wrapped(lanes)
    return "wrapped", size


def selected(read: ReadIndexed, otherwise: float) -> Expression:
    """A read that has `otherwise` where an index is out of range, by clamped indices."""
    inside: Expression | None = None
    terms = []
    for term in read.terms:
        size = Const(term.size, "int64") if isinstance(term.size, int) else SizeOf(term.size)
        zero, const = Const(0, "int64"), Const(1, "int64")
        here = Op(
            "bitwise_and",
            (Op("ge", (term.index, zero), "bool"), Op("lt", (term.index, size), "bool")),
            "bool",
        )
        inside = here if inside is None else Op("bitwise_and", (inside, here), "bool")
        last = Op("sub", (size, const), "int64")
        low = Op("maximum", (term.index, zero), "int64")
        terms.append(replace(term, index=Op("minimum", (low, last), "int64")))
    assert inside is not None
    indexed = replace(read, terms=tuple(terms), otherwise=None)
    return Op("where", (inside, indexed, Const(otherwise, read.dtype)), read.dtype)


def _need_wrapped(lanes: Lanes) -> None:
    kind = lanes.type("int64")
    text = (
        f"INLINE {kind} wrapped({kind} index, long size) {{\n"
        "    return index < 0 ? index + size : index;\n}"
    )
    lanes.need(f"wrapped({kind})", lambda: text)


def _need_checked(lanes: Lanes, function: str, wraps: bool) -> None:
    kind = lanes.type("int64")
    lanes.need("out_of_range", lambda: OUT_OF_RANGE)
    at = "at" if wraps else "index"
    head = f"INLINE {kind} {function}({kind} index, long size, int code, int* error) {{\n"
    if wraps:
        head += f"    const {kind} at = index < 0 ? index + size : index;\n"
    if lanes.count == 1:
        text = (
            f"{head}    if ((unsigned long){at} < (unsigned long)size) return {at};\n"
            "    return out_of_range(index, size, code, error);\n}"
        )
    else:
        # the rare way is a call of its own: its loop would take the registers of the usual one
        unsigned, far = lanes.unsigned(8), f"{function}_far"
        outside = f"const auto outside = ({unsigned}){at} >= (unsigned long)size;\n"
        some = any_wide_lane(lanes, "outside")
        parameters = f"{kind} {at}, {kind} index, long size, int code, int* error"
        slow = (
            f"__attribute__((noinline, cold)) {kind} {far}({parameters}) {{\n    {outside}"
            f"    for (int lane = 0; lane < {lanes.count}; lane++)\n"
            "        if (outside[lane]) out_of_range(index[lane], size, code, error);\n"
            f"    return outside ? 0 : {at};\n}}"
        ).replace(f"{kind} index, {kind} index", f"{kind} index")
        lanes.need(f"{far}({kind})", lambda: slow)
        given = "at, index" if wraps else "index"
        text = (
            f"{head}    {outside}"
            f"    if (__builtin_expect({some}, 0)) return {far}({given}, size, code, error);\n"
            f"    return {at};\n}}"
        )
    lanes.need(f"{function}({kind})", lambda: text)


def read_by_places(values: Values, read: ReadIndexed, scope: Scope) -> str | None:
    """The text of a read whose lanes are chosen by contiguous indices in memory; None for any
    other read.

    Without an instruction for a gather, each element is loaded by its own index. Indices in memory
    are used in place: a vector of them is compared with the size, and only if one is negative or
    out of range are they wrapped, checked and stored in memory of their own.
    """
    base = values.bases[read.buffer]
    if not scope.is_lane or scope.count is not None or scope.lanes.count == 1:
        return None
    if read.address.then or scope.lanes.has_gather(base.dtype):
        return None
    varying = [term for term in read.terms if values.home(term.index, scope) is scope]
    if len(varying) != 1:
        return None
    (term,) = varying
    places = _pointer_to_indices(values, term, scope)
    if places is None:
        return None
    more, _ = values.indices(
        tuple(index_term for index_term in read.terms if index_term is not term), scope
    )
    pointer = values.pointer(base, read.address, scope) + more
    steps = step_text(term.stride), step_text(values.lane_step(read.address, scope))
    return scope.lanes.gather_places(base.dtype, pointer, places, *steps)


def _pointer_to_indices(values: Values, term: IndexTerm, scope: Scope) -> str | None:
    """The name of a pointer to the indices of a term."""
    index, key = term.index, ("places", term)
    if key in scope.memo or ("index", term) in scope.memo:
        return scope.memo.get(key)
    if not isinstance(index, Read) or index in values.blocks or index.address.then:
        return None
    base = values.bases[index.buffer]
    if base.dtype != "int64" or values.lane_step(index.address, scope) != 1:
        return None
    name, pointer = values.name(key, "places"), values.pointer(base, index.address, scope)
    beside = ""
    if term.checked or term.wraps:
        beside = values.name((key, "beside"), f"{name}_beside")
        scope.code.add(f"long {beside}[{scope.lanes.count}];")
    text = checked_places(scope.lanes, pointer, beside, term)
    scope.code.add(f"const long* {name} = {text};")
    scope.memo[key] = name
    return name


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
