"""Plants a wrong constant in Inductor's C++ on its way to the compiler, in this process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch._inductor.async_compile import AsyncCompile

from tcw.compiler.control.hooks import patch


@contextmanager
def wrong_inductor(old: str, new: str) -> Iterator[list[str]]:
    """Inside the block, the first match of a regular expression in each kernel becomes `new`; what
    is recorded stays correct. Returns the changed texts."""
    original = AsyncCompile.cpp_pybinding
    changed: list[str] = []

    def cpp_pybinding(self: Any, argtypes: Any, source_code: str, *args: Any, **kw: Any) -> Any:
        text, times = re.subn(old, new, source_code, count=1)
        if times:
            changed.append(source_code)
        return original(self, argtypes, text, *args, **kw)

    undo = patch(AsyncCompile, "cpp_pybinding", cpp_pybinding)
    try:
        yield changed
    finally:
        undo()
