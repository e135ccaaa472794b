"""Lowering: an ATen graph (FX, with fake tensors) becomes a value graph of loops.

One file per family of operations. `registry.py` maps operations to lowering functions, and
`builder.py` is the interface that those functions build with. Operations without a lowering become
calls.
"""
