"""The launcher: C++ between a call from Python and the kernels of a graph. Imports no torch."""
