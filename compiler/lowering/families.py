"""Loads the families of operations."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

import compiler.lowering


@cache
def load_families() -> None:
    """Import all modules of this package, which registers their lowerings."""
    for module in pkgutil.iter_modules(compiler.lowering.__path__):
        importlib.import_module(f"compiler.lowering.{module.name}")
