"""FX graphs, described: what capture, autograd and Inductor all need to turn a graph into records.

`tensors.py` describes values, `lines.py` finds the user's line, `nodes.py` describes nodes and
whole graphs, `text.py` prints them, `current.py` names the graph that is being compiled now.
Nothing here patches torch; everything here only reads.
"""
