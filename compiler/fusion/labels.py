"""A nest's readable label, derived from the ATen operations that it computes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from tcw.compiler.loops.graph import Compute

_COUNTER = re.compile(r"(_\d+)+$")
LIMIT = 4
"""Maximum number of words in a label; the rest is counted."""


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
    if len(words) > LIMIT + 1:
        words = [*words[:LIMIT], f"{len(words) - LIMIT} more"]
    return " + ".join(words)


COMMON = frozenset({"add", "sub", "mul", "div", "sum"})
"""Operations too common to locate the start of a pattern."""


def operations_of(members: list[Compute]) -> list[str]:
    """`var mean`: the operations behind the distinct origins, in order."""
    origins = dict.fromkeys(o for member in members for o in member.origins or (member.name,))
    return [_COUNTER.sub("", origin).strip("_").replace("_", " ") for origin in origins]
