"""The loop IR: sizes, layouts, expressions, the value graph that lowering makes, and fused nests.

Nothing here knows which machine the loops will run on. Only `interpreter/` imports torch; it is
imported by name, by tests.
"""
