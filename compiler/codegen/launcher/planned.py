"""A plan's segments as functions: where its values are, the memory of each kernel, and what is
returned to Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tcw.compiler.codegen.launcher.segment import (
    NUMBER,
    TENSOR,
    UNUSED,
    KernelCall,
    NewTensor,
    Parameter,
    Passed,
    ReturnedValue,
    SegmentFunction,
    TensorForm,
    ViewOf,
)
from tcw.compiler.codegen.unit import Function
from tcw.compiler.loops.graph import Call, Input, Operand, Result, operands
from tcw.compiler.loops.layouts import same_strides
from tcw.compiler.loops.nest import Program
from tcw.compiler.loops.sizes import Size, Symbolic, add, product, symbol
from tcw.compiler.memory.plan import InArena, New, Plan, Segment
from tcw.compiler.memory.segments import home

Kernels = Mapping[str, tuple[str, Function]]
"""Name of the nest -> the name of its function in the unit, and the function."""

DIRECT = "graph"
"""Name of a segment that is a whole graph."""


def segment_functions(
    plan: Plan, forms: Forms, kernels: Kernels, device: int
) -> list[SegmentFunction]:
    """All segments of the plan, in order. A graph that is a single segment is called directly.

    `device`: index of the GPU that runs them; -1 for the CPU."""
    direct = whole_graph(plan, forms, kernels)
    if direct is not None:
        return [replace(direct, device=device)]
    return [
        replace(segment_function(step.run, forms, kernels), device=device)
        for step in plan.steps
        if isinstance(step.run, Segment)
    ]


def segment_function(segment: Segment, forms: Forms, kernels: Kernels) -> SegmentFunction:
    """A segment that the wrapper calls with its tensors, then its sizes; returns what it allocates.

    A value that reuses outside memory is written there; the wrapper creates its tensor.
    """
    made = _function(segment, forms, kernels, segment.name, (), None)
    symbols = dict.fromkeys((*segment.sizes, *made.symbols))
    tensors = (Parameter(TENSOR, name) for name in segment.takes)
    return replace(made, parameters=(*tensors, *(Parameter(NUMBER, one) for one in symbols)))


def whole_graph(plan: Plan, forms: Forms, kernels: Kernels) -> SegmentFunction | None:
    """The boxed function for a whole graph; None if part of the graph needs Python."""
    graph = forms.program.graph
    if len(plan.steps) != 1 or not isinstance(plan.steps[0].run, Segment):
        return None
    segment = plan.steps[0].run
    inputs = {node.name: node for node in graph.nodes if isinstance(node, Input)}
    if any(node.constant for node in inputs.values()) or graph.symbols:
        return None
    returned: list[ReturnedValue] = []
    for output in graph.outputs:
        found = _returned(output, forms, inputs)
        if found is False:
            return None
        returned.append(found)
    passed = {value.parameter for value in returned if isinstance(value, Passed)}
    parameters = []
    for name in graph.parameters:
        used = TENSOR if name in segment.takes else UNUSED
        parameters.append(Parameter(used if name in inputs else NUMBER, name))
    if not passed <= set(graph.parameters):
        return None
    made = _function(segment, forms, kernels, DIRECT, tuple(parameters), tuple(returned))
    allocated = {name for name, _ in made.outputs}
    uses = {a.output for a in returned if isinstance(a, (NewTensor, ViewOf))}
    return made if uses <= allocated and {*made.symbols} <= {*graph.parameters} else None


def _returned(output: object, forms: Forms, inputs: Mapping[str, Input]) -> ReturnedValue | bool:
    """How a graph output is returned; False if only Python can return it."""
    if output is None or isinstance(output, Symbolic):
        return output
    if isinstance(output, int) and not isinstance(output, bool):
        return output
    if not isinstance(output, Operand):
        return False
    if output.value in inputs:
        return Passed(output.value) if forms.fits(output) else False
    home = forms.home(output.value)
    if not forms.is_new(home) or forms.of(home).dtype != output.dtype:
        return False
    if forms.fits(replace(output, value=home)):
        return NewTensor(home)
    return ViewOf(home, output.shape, output.strides, output.offset)


def _function(
    segment: Segment,
    forms: Forms,
    kernels: Kernels,
    name: str,
    parameters: tuple[Parameter, ...],
    returned: tuple[ReturnedValue, ...] | None,
) -> SegmentFunction:
    outputs = tuple((value, forms.of(value)) for value in segment.gives if forms.is_new(value))
    temporaries: dict[str, Size] = {}
    calls: list[KernelCall] = []
    moved: Size = 0
    for nest in segment.nests:
        function_name, function = kernels[nest.name]
        for value in function.pointers:
            moved = add(moved, forms.bytes(value))
            offset = forms.arena_offset(forms.home(value))
            if offset is not None:
                temporaries[forms.home(value)] = offset
        calls.append(
            KernelCall(
                function_name,
                tuple(forms.home(value) for value in function.pointers),
                tuple(symbol(size) for size in function.sizes),
                function.workspace_bytes,
                nest.label or nest.name,
            )
        )
    return SegmentFunction(
        name=name,
        parameters=parameters,
        outputs=outputs,
        calls=tuple(calls),
        temporaries=tuple(temporaries.items()),
        arena_bytes=segment.arena_bytes,
        moved_bytes=moved,
        returned=returned,
    )


class Forms:
    """The tensor of each value that has one, in the form that its first reader needs."""

    def __init__(self, program: Program, plan: Plan) -> None:
        self.program = program
        self.plan = plan
        self._forms: dict[str, TensorForm] = {}
        for value in program.graph.values().values():
            if isinstance(value, (Input, Result)):
                self._forms[value.name] = TensorForm(value.dtype, value.shape, value.strides)
        calls = (step for step in program.steps if isinstance(step, Call))
        taken = (operand for call in calls for operand in call.operands())
        for operand in (*operands(program.graph.outputs), *taken):
            self._take(operand)
        for name in plan.placements:
            self._inherit(name)

    def _take(self, operand: Operand) -> None:
        memory = self.program.memories.get(operand.value)
        if memory is None or operand.value in self._forms or operand.offset != 0:
            return
        if operand.dtype == memory.dtype and product(operand.shape) == memory.size:
            self._forms[operand.value] = TensorForm(
                operand.dtype, operand.shape, operand.strides, memory.size
            )

    def _inherit(self, value: str) -> None:
        """Memory that another value reuses is allocated in the form that the other value needs."""
        owner, memories = self.home(value), self.program.memories
        form = self._forms.get(value)
        if owner == value or form is None or owner in self._forms or owner not in memories:
            return
        if (memories[owner].dtype, memories[owner].size) == (form.dtype, form.elements):
            self._forms[owner] = form

    def of(self, value: str) -> TensorForm:
        """The form of a value's tensor; flat if no reader needs a particular one."""
        form = self._forms.get(value)
        if form is None:
            memory = self.program.memories[value]
            form = self._forms[value] = TensorForm(memory.dtype, (memory.size,), (1,))
        return form

    def fits(self, operand: Operand) -> bool:
        """Whether the operand is exactly its value's tensor."""
        form = self.of(operand.value)
        return (
            operand.offset == 0
            and operand.dtype == form.dtype
            and operand.shape == form.sizes
            and same_strides(operand.shape, operand.strides, form.strides)
        )

    def home(self, value: str) -> str:
        """The value that owns the memory: the start of a chain of reuses, or the value itself."""
        return home(value, self.plan.placements)

    def is_new(self, value: str) -> bool:
        return isinstance(self.plan.placements.get(value), New)

    def arena_offset(self, value: str) -> Size | None:
        """The offset of a value in its segment's arena, or None if it is elsewhere."""
        placement = self.plan.placements.get(value)
        return placement.offset if isinstance(placement, InArena) else None

    def bytes(self, value: str) -> Size:
        """The size of the value's memory in bytes."""
        memory = self.program.memories.get(value)
        return self.of(value).bytes if memory is None else memory.bytes
