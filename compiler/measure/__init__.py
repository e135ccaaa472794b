"""Measurements of a model, compiled and eager, in the process that compiled it."""
