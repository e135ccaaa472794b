"""Kernels compared with the same operations in float64: each result's error, and its bound."""
