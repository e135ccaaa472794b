"""Gathers whose indices stay in memory.

Without an instruction for a gather, each element is loaded by its own index. Indices that come from
memory unchanged are used in place: a vector of them is only compared with the dimension's size. If
one is negative or out of range, the whole vector is wrapped and checked, and stored in memory of
its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.nests.addresses import step_text
from tcw.compiler.codegen.cpp.nests.code import Scope
from tcw.compiler.codegen.cpp.nests.indices import checked_places
from tcw.compiler.loops.expressions import IndexTerm, Read, ReadIndexed

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.nests.values import Values


def read_by_places(values: Values, read: ReadIndexed, scope: Scope) -> str | None:
    """The text of a read whose lanes are chosen by contiguous indices in memory; None for any
    other read."""
    base = values.bases[read.buffer]
    if not scope.is_lane or scope.count is not None or scope.lanes.count == 1:
        return None
    if read.address.then or scope.lanes.has_gather(base.dtype):
        return None
    varying = [term for term in read.terms if values.home(term.index, scope) is scope]
    if len(varying) != 1:
        return None
    (term,) = varying
    places = _places(values, term, scope)
    if places is None:
        return None
    more, _ = values.indices(tuple(one for one in read.terms if one is not term), scope)
    pointer = values.pointer(base, read.address, scope) + more
    steps = step_text(term.stride), step_text(values.lane_step(read.address, scope))
    return scope.lanes.gather_places(base.dtype, pointer, places, *steps)


def _places(values: Values, term: IndexTerm, scope: Scope) -> str | None:
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
