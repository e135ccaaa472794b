"""What is being compiled now: torch's compile id and the id of the current graph.

torch keeps the compile id in a context (`torch._guards.CompileContext`) and restores it when a
backward graph is compiled later than its forward, so these ids are correct there as well.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class _InHand(threading.local):
    def __init__(self) -> None:
        self.graphs: list[str] = []
        self.buckets: list[int] = []


_in_hand = _InHand()


def current_compile_id() -> str:
    """torch's `frame/compile` id of this thread's current compile; "" outside a compile."""
    from torch._guards import CompileContext

    found = CompileContext.current_compile_id()
    return "" if found is None else str(found)


def graph_id(compile_id: str, kind: str) -> str:
    """The id of AOTAutograd's graph of this kind: `0/0/joint`, `0/0/backward`, …; of a bucket that
    DDP's optimizer cut out of the captured graph, `0/0/bucket1/backward`."""
    bucket = f"bucket{_in_hand.buckets[-1]}/" if _in_hand.buckets else ""
    return f"{compile_id}/{bucket}{kind}"


def lowering_graph_id(is_backward: bool, is_inference: bool) -> str:
    """The id of the graph that Inductor is compiling: `0/0/forward`, `0/0/backward` or
    `0/0/inference`, from the two flags of its `GraphLowering`."""
    kind = "backward" if is_backward else "inference" if is_inference else "forward"
    return graph_id(current_compile_id(), kind)


@contextmanager
def in_bucket(number: int) -> Iterator[None]:
    """This thread compiles this bucket (`compiler/capture/ddp.py`) inside the block."""
    _in_hand.buckets.append(number)
    try:
        yield
    finally:
        _in_hand.buckets.pop()


def current_bucket() -> int:
    """The bucket that this thread compiles, from 1; 0 for none."""
    return _in_hand.buckets[-1] if _in_hand.buckets else 0


def backward_in_bucket(compiler: Callable[..., Any]) -> Callable[..., Any]:
    """A compiler of backward graphs, which torch calls in the first backward: it compiles in the
    bucket that this thread compiles now."""
    number = current_bucket()

    @functools.wraps(compiler, updated=())
    def compile_backward(*args: Any, **kwargs: Any) -> Any:
        with in_bucket(number):
            return inner(*args, **kwargs)

    if hasattr(compiler, "compiler_fn"):  # torch's SerializableAOTDispatchCompiler
        inner = compiler.compiler_fn
        compiler.compiler_fn = compile_backward
        return compiler
    inner = compiler
    return compile_backward


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
