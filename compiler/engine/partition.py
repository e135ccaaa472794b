"""The partition into forward and backward for our engine: torch's min-cut, decided by the gate
(compiler/autograd/save.py), with our own common subexpression elimination."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import fx
from torch._functorch import config as functorch_config
from torch._functorch.partitioners import min_cut_rematerialization_partition

from tcw.compiler.autograd.save import Halves, decide_saved
from tcw.compiler.control.gate import Gate
from tcw.compiler.control.hooks import Hook, during, patch, resolve
from tcw.compiler.engine.recording import current
from tcw.compiler.graphs.current import current_compile_id, graph_id
from tcw.compiler.graphs.lazy_modules import as_lazy
from tcw.compiler.protocol.decision import ENGINE
from tcw.compiler.rewrites.order import JOINT, rewrite
from tcw.compiler.rewrites.subject import Subject

_TREES = "networkx.algorithms.flow:boykov_kolmogorov"
_MODULE = "networkx.algorithms.flow.maxflow"
_DEFAULT = "default_flow_func"

HOOK = Hook(
    name="minimum cut",
    offers="the cut of a joint graph in a third of networkx's time",
    needs=(_TREES, f"{_MODULE}:{_DEFAULT}"),
    test="engine/test_partition.py",
)


@contextmanager
def maximum_flow_by_trees() -> Iterator[None]:
    """networkx finds the minimum cut by Boykov and Kolmogorov's trees (IEEE PAMI 26, 2004) inside.

    Joint graphs have few edges with a capacity on each path, which takes the trees a third of what
    pushing preflows takes, networkx's default. The cut is the same: networkx returns the one that
    is nearest to the sink, of which there is one, whatever the flow. torch 2.15 has a cut of its
    own. TorchDynamo compiles in one thread at a time, so nothing else restores the default.
    """
    if HOOK.missing():
        yield
        return
    with during(patch(resolve(_MODULE), _DEFAULT, resolve(_TREES))):
        yield


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
