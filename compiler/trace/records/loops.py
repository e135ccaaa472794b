"""The loops of a scheduler node, as records."""

from __future__ import annotations

from tcw.compiler.trace.records.base import *


class LoopLine(Part):
    """A line of a loop nest: the head of a loop, or one operation in the loops around it.

    The operations are those of Inductor's `LoopBody` (torch/_inductor/loop_body.py): `load`,
    `store`, `reduction`, `store_reduction`, `mul`, … A masked subblock is an operation `subblock`
    whose lines are one deeper and end in a `return`.
    """

    depth: Index = 0
    """How many loops and subblocks are around it."""
    variable: str = ""
    """The loop's variable; "" for an operation."""
    size: Size = ""
    """The loop's number of iterations."""
    reduced: bool = False
    """Whether the loop goes over a dimension that is reduced."""
    result: str = ""
    """The name of the operation's result; of a subblock, its own name."""
    operation: str = ""
    arguments: tuple[str, ...] = ()
    """Buffers, names of results, index expressions, constants, dtypes."""
    node: str = ""
    """Of a costly operation (`loop_nests.COSTLY`) of Inductor: the node of the lowered graph that
    it belongs to."""

    @property
    def text(self) -> str:
        """The line as it is printed, without its indentation."""
        if self.variable:
            return f"{'reduce' if self.reduced else 'for'} {self.variable} in {self.size}:"
        if self.operation == "subblock":
            return f"{self.result}:"
        if self.operation == "return":
            return f"return {', '.join(self.arguments)}"
        call = f"{self.operation}({', '.join(self.arguments)})"
        return f"{self.result} = {call}" if self.result else call
