"""The partition into forward and backward for our engine: torch's min-cut, decided by the gate
(compiler/autograd/save.py), with our own common subexpression elimination."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import fx
from torch._functorch import config as functorch_config
from torch._functorch.partitioners import min_cut_rematerialization_partition

from tcw.compiler.autograd.save import Halves, decide_saved
from tcw.compiler.control.gate import Gate
from tcw.compiler.engine.maximum_flow import maximum_flow_by_trees
from tcw.compiler.engine.recording import current
from tcw.compiler.graphs.current import current_compile_id, graph_id
from tcw.compiler.graphs.lazy_modules import as_lazy
from tcw.compiler.protocol.decision import ENGINE
from tcw.compiler.rewrites.order import JOINT, rewrite
from tcw.compiler.rewrites.subject import Subject


def partition(
    joint: fx.GraphModule, joint_inputs: Sequence[Any], *, gate: Gate | None = None, **kwargs: Any
) -> Halves:
    """The forward and the backward half of a joint graph. Each saved or recomputed tensor is a
    decision `tcw/0/0/joint/save/NAME`.

    Neither half writes its Python before somebody calls or reads it: torch's backward would at its
    copy and after each of our passes, without ever being called.
    """

    def cut() -> Halves:
        return _cut(joint, joint_inputs, **kwargs)

    graph = graph_id(current_compile_id(), "joint")
    halves = decide_saved(joint, None, cut, gate or current().gate, graph, ENGINE)
    forward, backward = map(as_lazy, halves)
    return forward, backward


def _cut(joint: fx.GraphModule, joint_inputs: Sequence[Any], **kwargs: Any) -> Halves:
    """Torch's min-cut, with our common subexpression elimination instead of torch's."""
    listening = current()
    subject = Subject(joint, joint_inputs, gate=listening.gate)
    rewrite(JOINT, subject, listening.recorder, stage="joint rewrites")
    with functorch_config.patch(cse=False), maximum_flow_by_trees():
        halves: Halves = min_cut_rematerialization_partition(joint, joint_inputs, **kwargs)
    return halves
