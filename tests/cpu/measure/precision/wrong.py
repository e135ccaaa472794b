"""One wrong constant in Inductor's C++, put there on its way to the compiler of this process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch._inductor.async_compile import AsyncCompile

from compiler.control.hooks import patch


@contextmanager
def wrong_inductor(old: str, new: str) -> Iterator[list[str]]:
    """Inside the block, the first match of a regular expression in each kernel becomes `new`: what
    is recorded stays right. Answers the texts that were changed."""
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
