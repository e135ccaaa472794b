"""The algorithm by which networkx finds the minimum cut of a joint graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tcw.compiler.control.hooks import Hook, during, patch, resolve

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
