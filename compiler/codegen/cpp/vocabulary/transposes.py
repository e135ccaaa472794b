"""Transposes of as many registers as a register has lanes, by halves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compiler.codegen.cpp.vocabulary.lanes import Lanes


def transpose(lanes: Lanes, registers: Sequence[str], dtype: str) -> str:
    """Lane j of register k and lane k of register j change places.

    Step `half` swaps the off-diagonal blocks of each 2*half square: two shuffles for each pair of
    registers, so that 16 x 16 takes 64.
    """
    if lanes.count == 1:
        return ";"
    register, n = lanes.type(dtype), lanes.count
    names = [f"r{k}" for k in range(n)]

    def text() -> str:
        lines, half = [f"  {register} t;"], n // 2
        while half:
            for row in range(n):
                if row & half:
                    continue
                a, b = names[row], names[row + half]
                low = [lane if not lane & half else n + lane - half for lane in range(n)]
                high = [lane + half if not lane & half else n + lane for lane in range(n)]
                lines.append(
                    f"  t = __builtin_shufflevector({a}, {b}, {', '.join(map(str, low))});"
                    f" {b} = __builtin_shufflevector({a}, {b}, {', '.join(map(str, high))});"
                    f" {a} = t;"
                )
            half //= 2
        parameters = ", ".join(f"{register}& {name}" for name in names)
        body = "\n".join(lines)
        return f"INLINE void transpose({parameters}) {{\n{body}\n}}"

    lanes.need(f"transpose({register})", text)
    return f"transpose({', '.join(registers)});"
