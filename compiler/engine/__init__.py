"""The tcw engine's entry: what `torch.compile(model, backend="tcw")` calls.

`backend` has TorchDynamo's graph traced and split by AOTAutograd, with our decompositions, and
gives each half to `compile_graph`, where the stages stand in order. Everything before the graph is
PyTorch's own capture; everything after it is ours.
"""

from __future__ import annotations

from compiler.engine.backend import backend

__all__ = ["backend"]
