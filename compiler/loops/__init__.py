"""The loop IR: sizes, layouts, expressions, the value graph that lowering makes, and fused nests.

Nothing here knows which machine the loops will run on, and nothing here imports torch.
"""
