"""Kernels against the same operations in float64: by how much each result is off, and may be."""
