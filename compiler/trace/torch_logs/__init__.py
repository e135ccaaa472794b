"""Logs that torch writes with `TORCH_TRACE`, read as recordings. Needs no torch."""
