"""Indices read from memory: negative ones wrap, those out of range are reported."""

from __future__ import annotations

from compiler.codegen.cpp.nests.code import Scope
from compiler.codegen.cpp.vocabulary import INDEX_OUT_OF_RANGE
from compiler.loops.expressions import IndexTerm
from compiler.loops.sizes import c_expression


def checked_index(scope: Scope, text: str, term: IndexTerm) -> str:
    """The index of a term, wrapped and checked as it asks."""
    size = c_expression(term.size)
    if term.checked and scope.count is not None:
        text = scope.lanes.select_lanes(
            text, scope.lanes.constant(0, "int64"), scope.count, "int64"
        )
    if term.wraps:
        _need(scope, "wrapped")
        text = f"wrapped({text}, {size})"
    if term.checked:
        _need(scope, "checked")
        text = f"checked({text}, {size}, error)"
    return text


def _need(scope: Scope, function: str) -> None:
    lanes = scope.lanes
    kind = lanes.type("int64")
    if function == "wrapped":
        text = (
            f"INLINE {kind} wrapped({kind} index, long size) {{\n"
            "    return index < 0 ? index + size : index;\n}"
        )
    elif lanes.count == 1:
        text = (
            "INLINE long checked(long index, long size, int* error) {\n"
            "    if ((unsigned long)index < (unsigned long)size) return index;\n"
            f"    *error = {INDEX_OUT_OF_RANGE};\n    return 0;\n}}"
        )
    else:
        text = (
            f"INLINE {kind} checked({kind} index, long size, int* error) {{\n"
            f"    const {kind} outside = (index < 0) | (index >= size);\n"
            "    long some = 0;\n"
            f"    for (int lane = 0; lane < {lanes.count}; lane++) some |= outside[lane];\n"
            f"    if (some) *error = {INDEX_OUT_OF_RANGE};\n"
            "    return outside ? 0 : index;\n}"
        )
    lanes.need(f"{function}({kind})", lambda: text)
