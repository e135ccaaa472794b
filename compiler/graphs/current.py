"""What is being compiled now: torch's compile id and the id of the current graph.

torch keeps the compile id in a context (`torch._guards.CompileContext`) and restores it when a
backward graph is compiled later than its forward, so these ids are correct there as well. The ids
are names of `tcw.compiler.trace.compile_names`: torch's own repeat after `torch._dynamo.reset()`.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tcw.compiler.trace.compile_names import CompileNames


class _InHand(threading.local):
    def __init__(self) -> None:
        self.graphs: list[str] = []
        self.buckets: list[int] = []


_in_hand = _InHand()


class _Named:
    """The names of this process's compiles, since its ids last began at 0 on purpose."""

    def __init__(self, starts: int = -1) -> None:
        self.starts = starts
        self.names = CompileNames()
        self.given: dict[int, tuple[Any, str]] = {}
        """id of torch's `CompileId` -> that object, kept so that no other gets its id; its name."""


_named = _Named()


def begin_compile(compile_id: Any, starts: int) -> str:
    """The name of a compile that begins now. `compile_id`: torch's object; `starts`: how often the
    recording itself has let ids restart (`Recorder.starts`), each with names of its own."""
    global _named
    if _named.starts != starts:
        _named = _Named(starts)
    name = _named.names.begin(str(compile_id))
    _named.given[id(compile_id)] = compile_id, name
    return name


def forget_compiles() -> None:
    """A recording begins: no name is taken."""
    global _named
    _named = _Named()


def name_of(compile_id: Any) -> str:
    """The name of the compile that has this `CompileId`, or this id as text."""
    if isinstance(compile_id, str):
        return _named.names.of(compile_id)
    known = _named.given.get(id(compile_id))
    return str(compile_id) if known is None else known[1]


def current_compile_id() -> str:
    """The name of this thread's current compile; "" outside a compile."""
    from torch._guards import CompileContext

    found = CompileContext.current_compile_id()
    return "" if found is None else name_of(found)


def graph_id(compile_id: str, kind: str) -> str:
    """The id of AOTAutograd's graph of this kind: `0/0/joint`, `0/0/backward`, …; of a bucket that
    DDP's optimizer cut out of the captured graph, `0/0/bucket1/backward`."""
    bucket = f"bucket{_in_hand.buckets[-1]}/" if _in_hand.buckets else ""
    return f"{compile_id}/{bucket}{kind}"


def lowering_graph_id(is_backward: object, is_inference: object) -> str:
    """The id of the graph that Inductor is compiling: `0/0/forward`, `0/0/backward` or
    `0/0/inference`, from the two flags of its `GraphLowering`, which may be None."""
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
