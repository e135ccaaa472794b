"""Nests to header-free C++ with vector extensions."""
