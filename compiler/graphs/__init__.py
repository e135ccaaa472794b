"""FX graphs, described: nodes, tensors, lines, and the ids under which a trace knows them."""
