"""Lowering: an ATen graph (FX, with fake tensors) becomes a value graph of loops.

A file for each family of operations; `registry.py` says which function lowers what, `builder.py`
is what such a function is given. Whatever has no lowering becomes a call.
"""
