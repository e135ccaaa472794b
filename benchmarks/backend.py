"""The two sides of a comparison, as torch.compile takes them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def backend(engine: str) -> str | Callable[..., Any]:
    """`inductor` by name; `tcw` from this checkout, installed or not."""
    if engine != "tcw":
        return engine
    sys.path.insert(0, str(ROOT))
    from compiler.engine.backend import backend as ours

    return ours
