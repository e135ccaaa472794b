"""What two scheduler nodes share although Inductor counts no shared data.

`Scheduler.score_fusion_memory` (torch/_inductor/scheduler.py) counts accesses that are equal: the
same buffer, the same index, the same sizes. `decide_fusion_fail_reason` tells such pairs apart in
the same way for torch's own logs.
"""

from __future__ import annotations

from typing import Any

from tcw.compiler.trace.byte_counts import bytes_text

_NAMED = 3
"""At most this many buffers are named."""


def shared_words(first: Any, second: Any) -> str:
    """`both read buf26, 32.0 KB, in different orders: Inductor's score is 0`; "" if they share no
    buffer."""
    one, other = _accesses(first), _accesses(second)
    written = {dep.name for node in (first, second) for dep in node.read_writes.writes}
    names = [name for name in one if name in other]
    if not names:
        return ""
    parts = []
    for name in sorted(names, key=lambda name: -_bytes(one[name], other[name]))[:_NAMED]:
        size = bytes_text(_bytes(one[name], other[name]))
        verb = "one writes and the other reads" if name in written else "both read"
        parts.append(f"{verb} {name}, {size}, {_how(one[name], other[name])}")
    more = f", and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(parts)}{more}: Inductor's score is 0"


def _accesses(node: Any) -> dict[str, list[Any]]:
    """What a node reads and writes of each buffer."""
    found: dict[str, list[Any]] = {}
    for access in node.read_writes.reads_and_writes():
        found.setdefault(access.name, []).append(access)
    return found


def _bytes(*sides: list[Any]) -> int:
    """What the side that touches more touches."""
    return max(sum(int(access.numbytes_hint()) for access in side) for side in sides)


def _how(first: list[Any], second: list[Any]) -> str:
    if len(first) > 1 or len(second) > 1:
        return "at different places"
    one, other = first[0], second[0]
    if not all(hasattr(access, "get_offset") for access in (one, other)):
        return "whole, without an index to compare"
    if one.get_numel() != other.get_numel():
        return "in parts of different sizes"
    if one.get_offset() != other.get_offset():
        return "from different elements on"
    if one.normalize_with_stride_order() == other.normalize_with_stride_order():
        return "in different orders"
    return "with different indexes"
