"""The kernels that Inductor's Python defines: `name = async_compile.how(…, '''text''')`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_KERNEL = re.compile(
    r"^(?P<name>\w+) = async_compile\.(?P<how>\w+)\((?:[^\n]*?r?(?P<quote>'''|\"\"\"))?",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class KernelDefinition:
    """One statement that defines a kernel."""

    name: str
    how: str
    """Who builds it: `cpp_pybinding`, `triton`, `multi_kernel`."""
    text: str
    """Between the quotes; "" for one that is made of others. C++ begins on a new line, Triton's
    text with an empty one."""
    start: int
    """Of the statement in the code."""
    end: int
    """Of the text in the code."""

    @property
    def source(self) -> str:
        """The text that is built."""
        return self.text.removeprefix("\n") if self.how.startswith("cpp") else self.text


def definitions(code: str) -> Iterator[KernelDefinition]:
    """Each kernel's definition, in order; a text that is cut off counts."""
    end = 0
    for match in _KERNEL.finditer(code):
        if match.start() < end:
            continue  # inside a kernel's text
        end = match.end()
        if match["quote"]:
            closed = code.find(match["quote"], end)
            end = closed if closed >= 0 else len(code)
        text = code[match.end() : end]
        yield KernelDefinition(match["name"], match["how"], text, match.start(), end)
