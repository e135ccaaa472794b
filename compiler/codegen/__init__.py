"""Code generation: the same fused nests to C++ (and, in time, to Triton). Imports no torch."""
