"""FX graph descriptions: what capture, autograd and Inductor share to turn graphs into records.

`tensors.py` describes values, `lines.py` finds the user's line, `nodes.py` describes nodes and
whole graphs, `text.py` prints them, and `current.py` identifies the graph being compiled. Nothing
here patches torch or modifies a graph.
"""
