"""How many bytes of each value an operation of the value graph reads or writes."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from tcw.compiler.engine.records.compiled import Operation
from tcw.compiler.loops.dtypes import BYTES
from tcw.compiler.loops.expressions import Gather, Load
from tcw.compiler.loops.graph import (
    Buffer,
    Call,
    Input,
    Map,
    Reduce,
    Result,
    Scan,
    Store,
    extent,
    reads,
)
from tcw.compiler.loops.layouts import Shape, View
from tcw.compiler.loops.sizes import Size

Value = Input | Map | Reduce | Scan | Buffer | Result


Parts = dict[object, int]
"""Parts of values that operations access, numbered from 1."""


def touched(
    operation: Operation, values: Mapping[str, Value], parts: Parts
) -> tuple[dict[str, int], dict[str, int]]:
    """Bytes of each value that an operation reads or writes, and the part if it is not the whole.

    A view counts only what it shows, a gather at most the elements that it gathers, and never more
    than the value has. Values that are symbolic or have a dtype without loops are left out.
    """
    counts: dict[str, dict[object, int | None]] = {}

    def take(value: str, place: object, count: int | None) -> None:
        counts.setdefault(value, {})[place] = count

    if isinstance(operation, Call):
        for one in operation.operands():
            shown = (one.shape, one.strides, one.offset)
            take(one.value, shown, _distinct(one.shape, one.strides))
        for result in operation.results:
            if result is not None:
                take(result.name, "made", _number(extent(result)))
        for name in operation.mutates:
            take(name, "mutated", _number(extent(values[name])) if name in values else None)
    else:
        size = _product(operation.domain)
        for load in reads(operation):
            terms = load.terms if isinstance(load, Gather) else ()
            take(load.value, (load.view, terms), size if terms else _shown(load, size))
        if isinstance(operation, Store):
            # an upper bound, since several elements may hit one place
            take(operation.buffer, "stored", size)
        else:
            take(operation.name, "made", _number(extent(operation)))
    found: dict[str, int] = {}
    which: dict[str, int] = {}
    for name, places in counts.items():
        value = values.get(name)
        if value is None or value.dtype not in BYTES:
            continue
        whole = _number(extent(value))
        known = [count for count in places.values() if count is not None]
        if whole is None or len(known) < len(places):
            continue
        count = min(whole, sum(known))
        found[name] = count * BYTES[value.dtype]
        if count < whole:
            part = (name, frozenset(places))
            which[name] = parts.setdefault(part, len(parts) + 1)
    return found, which


def _shown(load: Load | Gather, size: int | None) -> int | None:
    """The number of elements of a value that a view shows."""
    return None if size is None else min(size, *_images(load.view), size)


def _images(view: View) -> list[int]:
    found = [_distinct(layout.shape, layout.strides) for layout in view]
    return [count for count in found if count is not None]


def _distinct(shape: Shape, strides: tuple[Size, ...]) -> int | None:
    return _product(tuple(s for s, stride in zip(shape, strides, strict=True) if stride != 0))


def _product(sizes: Shape) -> int | None:
    known = [size for size in sizes if isinstance(size, int)]
    return prod(known) if len(known) == len(sizes) else None


def _number(size: Size) -> int | None:
    return size if isinstance(size, int) else None
