"""What is being compiled now: torch's compile id and the id of the current graph.

torch keeps the compile id in a context (`torch._guards.CompileContext`) and restores it when a
backward graph is compiled later than its forward, so these ids are correct there as well.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _InHand(threading.local):
    def __init__(self) -> None:
        self.graphs: list[str] = []


_in_hand = _InHand()


def current_compile_id() -> str:
    """torch's `frame/compile` id of this thread's current compile; "" outside a compile."""
    from torch._guards import CompileContext

    found = CompileContext.current_compile_id()
    return "" if found is None else str(found)


def graph_id(compile_id: str, kind: str) -> str:
    """The id of AOTAutograd's graph of this kind: `0/0/joint`, `0/0/backward`, …"""
    return f"{compile_id}/{kind}"


def lowering_graph_id(is_backward: bool, is_inference: bool) -> str:
    """The id of the graph that Inductor is compiling: `0/0/forward`, `0/0/backward` or
    `0/0/inference`, from the two flags of its `GraphLowering`."""
    kind = "backward" if is_backward else "inference" if is_inference else "forward"
    return graph_id(current_compile_id(), kind)


@contextmanager
def in_hand(graph: str) -> Iterator[None]:
    """Make `graph` this thread's current graph inside the block."""
    _in_hand.graphs.append(graph)
    try:
        yield
    finally:
        _in_hand.graphs.pop()


def current_graph_id() -> str:
    """This thread's current graph: AOTAutograd's or Inductor's, else the captured graph."""
    return _in_hand.graphs[-1] if _in_hand.graphs else current_compile_id()
