"""Rewrites of the ATen graph: our passes over it, before any operation becomes a loop.

`order.py` has them all, in the order in which they run. They change the graph as it was captured,
the joint graph, and each graph that is lowered; `decompositions.py` says what AOTAutograd traces an
operation into, in between. Each is recorded as a pass, and those that may pay or not ask the gate.
"""
