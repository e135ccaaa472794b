"""Builds a loop nest from a group of the value graph, with a label of what it computes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from tcw.compiler.fusion.axes import axes_of, reduced_view
from tcw.compiler.fusion.groups import Group
from tcw.compiler.fusion.rows import mask_of
from tcw.compiler.fusion.statements import Statements, mask_bits
from tcw.compiler.loops.graph import Compute, Reduce
from tcw.compiler.loops.nest import Axis, Nest

_COUNTER = re.compile(r"(_\d+)+$")
LABEL_LENGTH = 4
"""Maximum number of words in a label; the rest is counted."""


def nest(group: Group, name: str, stored: frozenset[str]) -> Nest:
    """The nest of a group, which writes the group's `stored` values to memory."""
    axes = axes_of(group, group.members)
    reduced = 0
    for node in group.members:
        if not isinstance(node, Reduce) or not group.is_element(node):
            continue
        if mask_of(node.domain, node.reduced) == group.mask:
            reduced = mask_bits(axes.along(reduced_view(group, node)))
    statements = Statements(group, axes, stored, reduced)
    for node in group.members:
        statements.add(node)
    return Nest(
        name,
        tuple(Axis(size, bool(reduced >> i & 1)) for i, size in enumerate(axes.sizes)),
        statements.all(),
        label(group.members),
    )


@dataclass(frozen=True, slots=True)
class Pattern:
    """Operations that have a common name."""

    words: str
    needs: Mapping[str, int]
    takes: Mapping[str, int] = field(default_factory=dict)
    """Further operations that belong to the pattern if present."""


PATTERNS = (
    Pattern("softmax", {"amax": 1, "sub": 1, "exp": 1, "sum": 1, "div": 1}),
    Pattern("log softmax", {"amax": 1, "sub": 2, "exp": 1, "sum": 1, "log": 1}),
    Pattern(
        "layer norm",
        {"var mean": 1, "add": 1, "rsqrt": 1, "sub": 1, "mul": 1},
        {"mul": 1, "add": 1},
    ),
    Pattern("rms norm", {"pow": 1, "mean": 1, "add": 1, "rsqrt": 1, "mul": 1}, {"mul": 1}),
    Pattern("gelu", {"erf": 1, "add": 1, "mul": 2}, {"mul": 1}),
    Pattern("silu", {"neg": 1, "exp": 1, "add": 1, "div": 1}),
    Pattern("silu", {"sigmoid": 1, "mul": 1}),
)
"""As in torch's decompositions. Earlier patterns take precedence."""


def label(members: list[Compute]) -> str:
    """`add + layer norm`: distinct words in the order of first computation."""
    operations = operations_of(members)
    left = Counter(operations)
    named: list[tuple[int, str]] = []
    for pattern in PATTERNS:
        while all(left[name] >= count for name, count in pattern.needs.items()):
            left.subtract(pattern.needs)
            for name, count in pattern.takes.items():
                left[name] -= min(count, left[name])
            place = min(operations.index(name) for name in pattern.needs if name not in COMMON)
            named.append((place, pattern.words))
    for place, name in enumerate(operations):
        if left[name] > 0:
            named.append((place, name))
    words = list(dict.fromkeys(word for _, word in sorted(named)))
    if len(words) > LABEL_LENGTH + 1:
        words = [*words[:LABEL_LENGTH], f"{len(words) - LABEL_LENGTH} more"]
    return " + ".join(words)


COMMON = frozenset({"add", "sub", "mul", "div", "sum"})
"""Operations too common to locate the start of a pattern."""


def operations_of(members: list[Compute]) -> list[str]:
    """`var mean`: the operations behind the distinct origins, in order."""
    origins = dict.fromkeys(o for member in members for o in member.origins or (member.name,))
    return [_COUNTER.sub("", origin).strip("_").replace("_", " ") for origin in origins]
