"""The launcher: C++ between Python's call and the kernels of a graph. Imports no torch."""
