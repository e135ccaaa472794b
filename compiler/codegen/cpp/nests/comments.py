"""Comments with the user's source lines above the loops that compute them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tcw.compiler.codegen.cpp.nests.code import Code
from tcw.compiler.codegen.cpp.nests.passes import Pass
from tcw.compiler.codegen.nests.facts import Facts
from tcw.compiler.codegen.nests.names import base_name, printable
from tcw.compiler.loops.nest import Write

LINES = 6
"""Maximum number of source lines above one loop; the rest is counted."""


class Comments:
    """Writes the comment above each pass."""

    def __init__(self, facts: Facts, lines: Mapping[str, str]) -> None:
        self.facts = facts
        self.lines = lines

    def above(self, code: Code, walk: Pass, needs: set[str]) -> None:
        """Add `// exp, sum` and the user's source lines behind these names."""
        names: dict[str, None] = {}
        origins: dict[str, None] = {}
        effects = set(map(id, walk.effects))
        for statement in self.facts.nest.statements:
            if isinstance(statement, Write):
                used = id(statement) in effects
            else:
                used = statement.name in needs or id(statement) in effects
                if used:
                    names[base_name(statement.name)] = None
            if used:
                origins.update(dict.fromkeys(statement.origins))
        words = ", ".join(names) or "write"
        code.add(f"// {words}", tuple(origins))
        texts = list(dict.fromkeys(self.lines[o] for o in origins if o in self.lines))
        for text in texts[:LINES]:
            code.add(f"//   {_one_line(text)}")
        if len(texts) > LINES:
            code.add(f"//   and {len(texts) - LINES} more lines")


def _one_line(text: str) -> str:
    """User text as the rest of a comment: one line that cannot continue onto the next."""
    return re.sub(r"\?+/", "?/", printable(text)[:160].replace("\\", "/"))
