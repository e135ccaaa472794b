"""Buffers that a kernel reads once, for which L2 should not give up what it holds.

Kept there, they would push out what other kernels have left, and dirty lines would have to be
written. After a kernel that filled L2, a row sum of 134 MB takes 55 µs on an H100, and 50 if it
does not push. Reading a gigabyte that way takes 4% longer. So only a reduction's buffers of up to a
few times L2 are read that way, and none that other kernels read too. A group norm of 67 MB takes
81 µs if only the kernel that sums up its images drops them, and 72 µs if the one that normalises
them does as well.

Kernels that write as much as they read gain if what they read is a part of L2: softmax of
8192 x 1024 bfloat16 14.8 → 14.0 µs, rms norm 15.0 → 14.2, of 32768 x 512 27.1 → 26.1. Larger ones
lose: 8192 x 11008 SwiGLU in bfloat16 181.5 → 184.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tcw.compiler.codegen.triton.limits import Limits
from tcw.compiler.codegen.triton.parts import Part
from tcw.compiler.loops.dtypes import BYTES
from tcw.compiler.loops.expressions import Address, ReadIndexed
from tcw.compiler.loops.nest import Nest, Program, Write, reads_in
from tcw.compiler.loops.sizes import product
from tcw.compiler.memory.accesses import access

MOST = 4
"""Times the bytes of L2, for a reduction."""
LEAST = 16
"""The part of L2 below which it does not matter what a kernel reads that writes as much."""


def read_by_several(program: Program) -> frozenset[str]:
    """The buffers that more than one step of a program reads."""
    count = Counter(buffer for step in program.steps for buffer in access(step).reads)
    return frozenset(buffer for buffer, times in count.items() if times > 1)


def streamed(part: Part, limits: Limits) -> frozenset[str]:
    """The buffers of which a kernel reads each element once, by the sizes above."""
    nest = part.nest
    found: dict[str, set[Address]] = {}
    widths: dict[str, int] = {}
    for read in reads_in(nest.statements):
        terms = read.terms if isinstance(read, ReadIndexed) else ()
        found.setdefault(read.buffer, set()).add(read.address)
        widths[read.buffer] = 0 if terms else BYTES[read.dtype]
    elements = limits.number(product(axis.size for axis in nest.axes))
    once = {
        buffer: elements * widths[buffer]
        for buffer, addresses in found.items()
        if len(addresses) == 1 and _each_once(nest, next(iter(addresses)), limits)
    }
    room = limits.l2_bytes
    along = {number for number, axis in enumerate(nest.axes) if axis.reduced}
    if along and not any(isinstance(s, Write) and along & set(s.axes) for s in nest.statements):
        return frozenset(buffer for buffer, size in once.items() if room < size <= MOST * room)
    if room // LEAST <= sum(once.values()) <= room * 2 // 3:
        return frozenset(buffer for buffer, size in once.items() if size)
    return frozenset()


def _each_once(nest: Nest, address: Address, limits: Limits) -> bool:
    """Whether different positions of the nest are different elements, by the hints."""
    if address.then:
        return False
    steps: Sequence[tuple[int, int]] = sorted(
        (abs(limits.number(stride)), limits.number(axis.size))
        for axis, stride in zip(nest.axes, address.strides, strict=True)
    )
    reached = 0
    for stride, size in steps:
        if size == 1:
            continue
        if stride <= reached:
            return False
        reached += stride * (size - 1)
    return True
