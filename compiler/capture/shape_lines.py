"""The user's line behind a condition on sizes, from torch's text of the guard.

torch appends it as a comment: `6 <= L['x'].size()[0]  # if x.shape[0] > 5:  # net.py:12 in forward
(_dynamo/…)`, and two for a range with both ends, the line of the lower one first
(`ShapeEnv.produce_guards_verbose` in torch/fx/experimental/symbolic_shapes.py). File names lack
their first folders (`torch.utils._traceback.shorten_filename`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tcw.compiler.trace.failed_guard import bare
from tcw.compiler.trace.records import Location

_LINE = re.compile(
    r"(?:^|# )(?P<file>[^#\n]+?):(?P<line>\d+) in (?P<function>\S+) \((?P<why>[^)]*)"
)
_NOT_THE_CAUSE = "user code shown is first use"
_RANGE = re.compile(r"^-?\d+ <= .+ <= (?P<upper>-?\d+)$")


def line_behind(part: str, seen: int | None, files: Iterable[str]) -> Location | None:
    """The line that made torch add the condition `part`, in one of `files`.

    `seen`: the value that failed. None if torch names no such line, or only the first use of the
    value: that a size is 0 or 1 is torch's own condition.
    """
    condition, _, comment = part.partition("  # ")
    lines = list(_LINE.finditer(comment))
    both = _RANGE.match(bare(condition))
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
