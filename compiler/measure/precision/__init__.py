"""Kernels against the same operations in float64: each result's error, and the error allowed."""
