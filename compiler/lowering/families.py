"""Loads the families of operations."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

import tcw.compiler.lowering


@cache
def load_families() -> None:
    """Import all modules of this package, which registers their lowerings."""
    for module in pkgutil.iter_modules(tcw.compiler.lowering.__path__):
        importlib.import_module(f"tcw.compiler.lowering.{module.name}")
