"""The location of a plan's values, and the sizes and strides of the tensors created on them."""

from __future__ import annotations

from tcw.compiler.codegen.launcher.segment import TensorForm
from tcw.compiler.loops.graph import Call, Input, Operand, Result, operands
from tcw.compiler.loops.layouts import same_strides
from tcw.compiler.loops.program import Program
from tcw.compiler.loops.sizes import Size, product
from tcw.compiler.memory.plan import InArena, New, Plan
from tcw.compiler.memory.segments import home


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
