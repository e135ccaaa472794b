"""Refs: the stable names of things in a trace.

src:FILE:LINE      a source line
fx:GRAPH/NODE      an FX node; GRAPH is a graph id such as `0/0` or `0/0/forward/lowered`
ir:GRAPH/NODE      a scheduler node (`op3`)
k:KERNEL           a kernel (`k4`)
k:KERNEL:LINE      a line of it
"""

from __future__ import annotations

Ref = str


def source(file: str, line: int) -> Ref:
    return f"src:{file}:{line}"


def node(graph: str, name: str) -> Ref:
    return f"fx:{graph}/{name}"


def operation(graph: str, name: str) -> Ref:
    return f"ir:{graph}/{name}"


def kernel(kernel_id: str, line: int | None = None) -> Ref:
    return f"k:{kernel_id}" if line is None else f"k:{kernel_id}:{line}"


def kind(ref: Ref) -> str:
    """`src`, `fx`, `ir` or `k`."""
    return ref.partition(":")[0]


def split_source(ref: Ref) -> tuple[str, int]:
    """`src:FILE:LINE` -> (FILE, LINE); FILE may contain colons."""
    file, _, line = ref[4:].rpartition(":")
    return file, digits(line) or 0


def split_node(ref: Ref) -> tuple[str, str]:
    """`fx:GRAPH/NODE` or `ir:GRAPH/NODE` -> (GRAPH, NODE)."""
    graph, _, name = ref[3:].rpartition("/")
    return graph, name


def split_kernel(ref: Ref) -> tuple[str, int | None]:
    """`k:KERNEL` or `k:KERNEL:LINE` -> (KERNEL, LINE or None)."""
    name, _, line = ref[2:].partition(":")
    return name, digits(line)


def digits(text: str) -> int | None:
    """The number in a text of a trace; None if it is not a number or is too long."""
    return int(text) if len(text) <= 18 and text.isascii() and text.isdigit() else None
