"""What a change of a captured graph's operations is called."""

from __future__ import annotations

from tcw.viewers.summary.differences.operations import OperationChange


def operation_words(change: OperationChange) -> str:
    """`gelu is gone`, `layers.2 is new: 17 operations`."""
    return {
        "new": f"{change.operation} is new",
        "gone": f"{change.operation} is gone",
        "dtype": f"{change.operation} computes in {change.after}, was {change.before}",
        "value": f"{change.operation} is given {change.after}, was {change.before}",
        "inputs": _inputs(change),
        "input dtype": _other_inputs(change),
        "input shape": _other_inputs(change),
        "module new": f"{change.operation} is new: {change.after}",
        "module gone": f"{change.operation} is gone: {change.before}",
        "many new": f"{change.alike} operations are new in {change.operation}: {change.after}",
        "many gone": f"{change.alike} operations are gone from {change.operation}: {change.after}",
        "module": f"{change.operation} computes {change.after} instead of {change.before}",
    }[change.kind]


def _other_inputs(change: OperationChange) -> str:
    """`x is 2×15, was 2×16`, `50 graph inputs are bfloat16, were float32`."""
    if change.alike == 1:
        return f"{change.operation} is {change.after}, was {change.before}"
    if change.kind == "input dtype":
        return f"{change.alike} graph inputs are {change.after}, were {change.before}"
    sizes = f"{change.operation} is {change.after}, was {change.before}"
    return f"{change.alike} parameters have other sizes: {sizes}, …"


def _inputs(change: OperationChange) -> str:
    if change.before and change.after:
        return f"{change.operation} reads {change.after} instead of {change.before}"
    more = f"also reads {change.after}" if change.after else f"no longer reads {change.before}"
    return f"{change.operation} {more}"
