"""Buffers that a reduction reads once, and that do not fit in L2.

Kept there, they would push out what other kernels have left, and dirty lines would have to be
written. After a kernel that filled L2, a row sum of 134 MB takes 55 µs on an H100, and 50 if it
does not push. Reading a gigabyte that way takes 4% longer, and so do kernels that write as much as
they read (each measured). So only buffers of up to a few times L2 are read that way, and none that
other kernels read too. A group norm of 67 MB takes 81 µs if only the kernel that sums up its images
drops them, and 72 µs if the one that normalises them does as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from compiler.codegen.triton.limits import Limits
from compiler.codegen.triton.parts import Part
from compiler.loops.dtypes import BYTES
from compiler.loops.expressions import Address, ReadIndexed
from compiler.loops.nest import Nest, Write, reads_in
from compiler.loops.program import Program
from compiler.loops.sizes import product
from compiler.memory.accesses import access

MOST = 4
"""Times the bytes of L2."""


def read_by_several(program: Program) -> frozenset[str]:
    """The buffers that more than one step of a program reads."""
    count = Counter(buffer for step in program.steps for buffer in access(step).reads)
    return frozenset(buffer for buffer, times in count.items() if times > 1)


def streamed(part: Part, limits: Limits) -> frozenset[str]:
    """The buffers of which a reduction reads each element once, more bytes than L2 holds."""
    nest = part.nest
    along = {number for number, axis in enumerate(nest.axes) if axis.reduced}
    if not along or any(isinstance(s, Write) and along & set(s.axes) for s in nest.statements):
        return frozenset()
    found: dict[str, set[Address]] = {}
    widths: dict[str, int] = {}
    for read in reads_in(nest.statements):
        terms = read.terms if isinstance(read, ReadIndexed) else ()
        found.setdefault(read.buffer, set()).add(read.address)
        widths[read.buffer] = 0 if terms else BYTES[read.dtype]
    elements = limits.number(product(axis.size for axis in nest.axes))
    room = limits.architecture.l2_bytes
    return frozenset(
        buffer
        for buffer, addresses in found.items()
        if room < elements * widths[buffer] <= MOST * room
        and len(addresses) == 1
        and _each_once(nest, next(iter(addresses)), limits)
    )


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
