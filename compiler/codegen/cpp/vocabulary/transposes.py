"""Transposes of `lanes` registers of `lanes` lanes, and of tiles in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary.types import BITS
from tcw.compiler.loops.dtypes import BYTES, compute_dtype

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes


def transpose(lanes: Lanes, registers: Sequence[str], dtype: str) -> str:
    """Statement: transpose `lanes` declared registers of `lanes` lanes in place.

    Each step exchanges one bit of the register number with one bit of the lane number. Each pair of
    registers takes two shuffles that are single instructions on every machine: first elements
    within 16 bytes (interleaving), then the 16-byte parts of a register (every second one). 16 x 16
    takes 64 shuffles.
    """
    if lanes.count == 1:
        return ";"
    register, n = lanes.type(dtype), lanes.count
    near = min(max(16 // BYTES[compute_dtype(dtype)], 1), n)
    names = [f"r{k}" for k in range(n)]

    def text() -> str:
        lines = [f"  {register} t;"]
        for half, (low, high) in _steps(n, near):
            for row in range(n):
                if row & half:
                    continue
                a, b = names[row], names[row + half]
                lines.append(
                    f"  t = __builtin_shufflevector({a}, {b}, {', '.join(map(str, low))});"
                    f" {b} = __builtin_shufflevector({a}, {b}, {', '.join(map(str, high))});"
                    f" {a} = t;"
                )
        parameters = ", ".join(f"{register}& {name}" for name in names)
        body = "\n".join(lines)
        return f"INLINE void transpose({parameters}) {{\n{body}\n}}"

    lanes.need(f"transpose({register})", text)
    return f"transpose({', '.join(registers)});"


def _steps(n: int, near: int) -> Iterator[tuple[int, tuple[list[int], list[int]]]]:
    """(bit of the register number, lanes of both results), for `near` elements per 16 bytes."""
    half = near // 2
    while half:
        low = [
            lane
            for start in range(0, n, near)
            for k in range(near // 2)
            for lane in (start + k, n + start + k)
        ]
        yield half, (low, [lane + near // 2 for lane in low])
        half //= 2
    half = near
    while half < n:
        low = [start + k for start in range(0, 2 * n, 2 * near) for k in range(near)]
        yield half, (low, [lane + near for lane in low])
        half *= 2


def load_transposed(
    lanes: Lanes, dtype: str, pointer: str, stride: str, registers: Sequence[str]
) -> str:
    """Statement: lane k of declared register j = pointer[k*stride + j], for `lanes` of both."""
    name, wide = "load_transposed", compute_dtype(dtype)
    element, register = lanes.storage(dtype), lanes.type(wide)
    names = [f"r{k}" for k in range(lanes.count)]
    loads = [lanes.load(dtype, f"p + {k} * stride") for k in range(lanes.count)]
    turned = lanes.transpose(names, wide)

    def text() -> str:
        lines = [f"{r} = {value};" for r, value in zip(names, loads, strict=True)]
        body = "\n".join(f"  {line}" for line in (*lines, turned))
        parameters = ", ".join(f"{register}& {r}" for r in names)
        return f"INLINE void {name}(const {element}* p, long stride, {parameters}) {{\n{body}\n}}"

    lanes.need(f"{name}({element}, {register})", text)
    return f"{name}({pointer}, {stride}, {', '.join(registers)});"


def transpose_tile(
    lanes: Lanes, dtype: str, pointer: str, stride: str, block: str, width: str
) -> str:
    """Statement: block[j*width + k] = pointer[k*stride + j], for `lanes` of both.

    The block holds elements of the compute dtype.
    """
    name, wide = f"transpose_tile{lanes.suffix}", compute_dtype(dtype)
    element, stored = lanes.storage(dtype), lanes.storage(wide)
    registers = [f"r{k}" for k in range(lanes.count)]
    turned = lanes.load_transposed(dtype, "p", "stride", registers)
    stores = [lanes.store(wide, f"block + {k} * width", r) for k, r in enumerate(registers)]

    def text() -> str:
        declared = f"{lanes.type(wide)} {', '.join(registers)};"
        body = "\n".join(f"  {line}" for line in (declared, turned, *stores))
        parameters = f"const {element}* p, long stride, {stored}* block, long width"
        return f"INLINE void {name}({parameters}) {{\n{body}\n}}"

    lanes.need(f"{name}({element}, {stored})", text)
    return f"{name}({pointer}, {stride}, {block}, {width});"


def transpose_bits(
    lanes: Lanes, dtype: str, pointer: str, stride: str, into: str, width: str
) -> str:
    """`transpose_tile` into memory of the same dtype."""
    if dtype not in BITS:
        return transpose_tile(lanes, dtype, pointer, stride, into, width)
    own = lanes.storage(BITS[dtype])
    pointer, into = f"(const {own}*)({pointer})", f"({own}*)({into})"
    return transpose_tile(lanes, BITS[dtype], pointer, stride, into, width)


def transpose_edge(
    lanes: Lanes,
    dtype: str,
    pointer: str,
    stride: str,
    block: str,
    width: str,
    rows: str,
    columns: str,
) -> str:
    """`transpose_tile` for the first `rows` j and `columns` k, at most `lanes` of each.

    A whole vector may be read where another row of the tile follows it in memory; nothing else is
    read. The remainder of the block's tile gets unspecified values.
    """
    name, wide = f"transpose_edge{lanes.suffix}", compute_dtype(dtype)
    element, stored = lanes.storage(dtype), lanes.storage(wide)
    registers = [f"r{k}" for k in range(lanes.count)]
    places = [f"p + {k} * stride" for k in range(lanes.count)]
    loads = [lanes.load(dtype, place) for place in places]
    partial = [lanes.load_partial(dtype, place, "rows") for place in places]
    turned = lanes.transpose(registers, wide)
    stores = [lanes.store(wide, f"block + {k} * width", r) for k, r in enumerate(registers)]

    def text() -> str:
        lines = [f"if (rows > {lanes.count}) rows = {lanes.count};"]
        lines.append(f"const long whole = stride >= {lanes.count} - rows ? columns - 1 : 0;")
        lines.append(f"{lanes.type(wide)} {', '.join(f'{r} = {{}}' for r in registers)};")
        lines += [f"if (whole >= {lanes.count}) {{"]
        lines += [f"  {r} = {value};" for r, value in zip(registers, loads, strict=True)]
        lines += ["} else {"]
        lines += [
            f"  if (whole > {k}) {r} = {load}; else if (columns > {k}) {r} = {part};"
            for k, (r, load, part) in enumerate(zip(registers, loads, partial, strict=True))
        ]
        lines += ["}"]
        body = "\n".join(f"  {line}" for line in (*lines, turned, *stores))
        return (
            f"OUTLINE void {name}(const {element}* p, long stride, {stored}* block, long width, "
            f"long rows, long columns) {{\n{body}\n}}"
        )

    lanes.need(f"{name}({element}, {stored})", text)
    return f"{name}({pointer}, {stride}, {block}, {width}, {rows}, {columns});"


def transpose_bits_edge(
    lanes: Lanes,
    dtype: str,
    pointer: str,
    stride: str,
    into: str,
    width: str,
    rows: str,
    columns: str,
) -> str:
    """`transpose_bits` that writes only the first `columns` j and `rows` k, at most `lanes` of
    each. The tile is read whole."""
    if dtype in BITS:
        own, dtype = lanes.storage(BITS[dtype]), BITS[dtype]
        pointer, into = f"(const {own}*)({pointer})", f"({own}*)({into})"
    name, wide = f"transpose_bits_edge{lanes.suffix}", compute_dtype(dtype)
    element = lanes.storage(dtype)
    registers = [f"r{k}" for k in range(lanes.count)]
    turned = lanes.load_transposed(dtype, "p", "stride", registers)
    stores = [
        lanes.store_partial(dtype, f"into + {k} * width", r, "rows")
        for k, r in enumerate(registers)
    ]

    def text() -> str:
        lines = [f"if (rows > {lanes.count}) rows = {lanes.count};"]
        lines.append(f"{lanes.type(wide)} {', '.join(registers)};")
        lines.append(turned)
        lines += [f"if (columns > {k}) {{ {store} }}" for k, store in enumerate(stores)]
        body = "\n".join(f"  {line}" for line in lines)
        return (
            f"OUTLINE void {name}(const {element}* p, long stride, {element}* into, long width, "
            f"long rows, long columns) {{\n{body}\n}}"
        )

    lanes.need(f"{name}({element})", text)
    return f"{name}({pointer}, {stride}, {into}, {width}, {rows}, {columns});"
