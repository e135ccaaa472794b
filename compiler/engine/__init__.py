"""The entry point of the tcw engine: what `torch.compile(model, backend="tcw")` calls.

`backend.py` has AOTAutograd trace and partition TorchDynamo's graph with our decompositions, and
passes each half to `compile.py`, which runs the stages in order. Everything before the graph is
PyTorch's own capture; everything after it is ours.
"""
