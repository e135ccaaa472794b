"""FX graph descriptions: what capture, autograd and Inductor share to turn graphs into records.

Nothing here patches torch or modifies a graph.
"""
