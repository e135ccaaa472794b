"""FX graphs, described: what capture, autograd and Inductor all need to turn a graph into records.

`tensors.py` describes values, `lines.py` finds the user's line, `nodes.py` describes nodes and
whole graphs. Nothing here patches torch; everything here only reads.
"""
