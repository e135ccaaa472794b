"""A graph as a picture: blocks, a layered layout, and its drawings as text cells, SVG, PNG, DOT."""
