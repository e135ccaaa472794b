"""The buffers that a graph's artifact describes, for inspection while it runs."""

from __future__ import annotations

import msgspec

from tcw.compiler.codegen.launcher.planned import Kernels
from tcw.compiler.codegen.unit import shared_buffers
from tcw.compiler.engine.records.planned import steps_of, touched
from tcw.compiler.loops.graph import Call, Input
from tcw.compiler.loops.layouts import row_major
from tcw.compiler.loops.nest import Nest, Program
from tcw.compiler.loops.sizes import Size
from tcw.compiler.memory.plan import Plan

Number = int | str
"""A size, or a Python expression in the graph's symbols if it is symbolic."""


class StridedForm(msgspec.Struct, frozen=True, array_like=True):
    """A strided tensor; strides and offset are in elements."""

    dtype: str
    sizes: tuple[Number, ...]
    strides: tuple[Number, ...]
    offset: Number = 0


class StepBuffers(msgspec.Struct, frozen=True, array_like=True):
    """The buffers that one kernel or ATen call accesses, by name."""

    reads: tuple[str, ...]
    writes: tuple[str, ...]
    ends: tuple[str, ...] = ()
    """Buffers that it reads and overwrites: other buffers in the same memory."""
    pointers: tuple[str, ...] = ()
    """For a kernel: its buffers, in the order of its pointers."""


class GraphBuffers(msgspec.Struct, frozen=True):
    """The buffers of one graph. A name is a value of the value graph, or an argument."""

    forms: dict[str, StridedForm]
    """The form of each buffer: dense, or as passed for an argument."""
    steps: tuple[StepBuffers, ...]
    """In plan order, like `MemoryPlan.steps`."""
    nodes: dict[str, tuple[str, StridedForm]]
    """Nodes of the lowered graph that are in a buffer -> the buffer's name, the tensor in it."""


def graph_buffers(program: Program, plan: Plan, kernels: Kernels) -> GraphBuffers:
    """The buffers of a program with planned memory.

    `kernels`: name of a nest -> its function.
    """
    forms = {
        memory.name: _form(memory.dtype, memory.shape, row_major(memory.shape).strides)
        for memory in program.memories.values()
    }
    for node in program.graph.nodes:
        if isinstance(node, Input):
            forms[node.name] = _form(node.dtype, node.shape, node.strides)
        elif isinstance(node, Call):
            for result in node.results:
                if result is not None:
                    forms[result.name] = _form(result.dtype, result.shape, result.strides)
    return GraphBuffers(
        forms,
        tuple(_touched(step, plan, kernels) for step in steps_of(plan)),
        {
            name: (tensor.value, _form(tensor.dtype, tensor.shape, tensor.strides, tensor.offset))
            for name, tensor in program.graph.tensors.items()
            if tensor.value in forms
        },
    )


def _touched(step: Nest | Call, plan: Plan, kernels: Kernels) -> StepBuffers:
    reads, writes = touched(step)
    if isinstance(step, Call):
        return StepBuffers(reads, writes, step.mutates)
    over = {*writes, *shared_buffers(step, plan)}
    ends = tuple(name for name in reads if name in over)
    found = kernels.get(step.name)
    return StepBuffers(reads, writes, ends, found[1].pointers if found else ())


def _form(
    dtype: str, sizes: tuple[Size, ...], strides: tuple[Size, ...], offset: Size = 0
) -> StridedForm:
    return StridedForm(dtype, _numbers(sizes), _numbers(strides), *_numbers((offset,)))


def _numbers(sizes: tuple[Size, ...]) -> tuple[Number, ...]:
    return tuple(size if isinstance(size, int) else str(size) for size in sizes)
