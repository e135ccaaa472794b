"""The C++ guard tree of a cache entry: its number of nodes and its leaves' conditions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tcw.compiler.trace.failed_guard import without_comment
from tcw.compiler.trace.records import Location

_LINE = re.compile(
    r"(?:^|# )(?P<file>[^#\n]+?):(?P<line>\d+) in (?P<function>\S+) \((?P<why>[^)]*)"
)
_NOT_THE_CAUSE = "user code shown is first use"
_RANGE = re.compile(r"^-?\d+ <= .+ <= (?P<upper>-?\d+)$")


def line_behind(part: str, seen: int | None, files: Iterable[str]) -> Location | None:
    """The line that made torch add the condition `part` on sizes, in one of `files`.

    torch appends it as a comment (`ShapeEnv.produce_guards_verbose`), without the first folders of
    its file, and two for a range with both ends, that of the lower one first.
    `seen`: the value that failed. None if torch names no such line, or only the first use of the
    value: that a size is 0 or 1 is torch's own condition.
    """
    condition, _, comment = part.partition("  # ")
    lines = list(_LINE.finditer(comment))
    both = _RANGE.match(without_comment(condition))
    if both is not None and len(lines) == 2:
        if seen is None:
            return None
        lines = lines[1:] if seen > int(both["upper"]) else lines[:1]
    if len(lines) != 1 or lines[0]["why"].startswith(_NOT_THE_CAUSE):
        return None
    named = lines[0]
    file = next((file for file in files if file.endswith(named["file"])), None)
    if file is None:
        return None
    line = int(named["line"])
    return Location(file=file, line=line, end_line=line, function=named["function"])


GLOBAL_STATE = "___check_global_state() against "


@dataclass
class GuardTree:
    """The result of one walk over the tree."""

    nodes: int = 0
    texts: dict[str, list[str]] = field(default_factory=dict)
    """By source expression: torch's text of each condition; the user's line follows as a comment.
    A leaf guard that relates several sources is listed under each."""

    relations: list[str] = field(default_factory=list)
    """torch's text of the conditions that Python checks after all others: those on sizes."""

    def lines_of(
        self, conditions: Iterable[str], files: Sequence[str]
    ) -> Iterator[Location | None]:
        """The line behind each of these conditions on sizes, in one of `files`."""
        texts = {without_comment(text): text for found in self.texts.values() for text in found}
        texts |= {without_comment(text): text for text in self.relations}
        for condition in conditions:
            yield line_behind(texts.get(condition, ""), None, files)

    def global_state(self) -> dict[str, Any]:
        """The torch state that the entry demands (`grad_mode`, `num_threads`, …); empty if none."""
        for text in self.texts.get("L", ()):
            if text.startswith(GLOBAL_STATE):
                return parse_global_state(text.removeprefix(GLOBAL_STATE))
        return {}


def parse_global_state(text: str) -> dict[str, Any]:
    """The JSON object at the start of `text`; empty if there is none."""
    try:
        found, _ = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def walk_guard_tree(root: Any) -> GuardTree:
    """Walk a `RootGuardManager` as torch's printer does (`GuardManagerWrapper` in guards.py)."""
    tree = GuardTree()
    epilogue = getattr(root, "get_epilogue_lambda_guards", list)
    tree.relations += [text for leaf in epilogue() for text in leaf.verbose_code_parts()]
    pending = [root]
    while pending:
        manager = pending.pop()
        tree.nodes += 1
        leaves = manager.get_leaf_guards()
        if leaves:
            found = tree.texts.setdefault(manager.get_source(), [])
            found.extend(text for leaf in leaves for text in leaf.verbose_code_parts())
        if hasattr(manager, "get_key_value_managers"):
            for pair in manager.get_key_value_managers().values():
                pending.extend(child for child in pair if child)
        pending.extend(manager.get_child_managers())
    return tree
