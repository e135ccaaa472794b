"""The tcw engine's entry: what `torch.compile(model, backend="tcw")` calls.

`backend.py` has TorchDynamo's graph traced and split by AOTAutograd, with our decompositions, and
gives each half to `compile.py`, where the stages stand in order. Everything before the graph is
PyTorch's own capture; everything after it is ours.
"""
