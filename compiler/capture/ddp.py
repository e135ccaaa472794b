"""Buckets of DistributedDataParallel: how its optimizer cuts a captured graph.

torch/_dynamo/backends/distributed.py: `DDPOptimizer.compile_fn` walks the graph from its end, adds
up the parameters that need gradients, and starts another bucket when one is full. Each bucket is
compiled by itself (`SubmodCompiler.run_node`), its backward in the first backward.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from torch import fx

from tcw.compiler.control.hooks import RecordingHook, Uninstall, around_call, before_call, undo_all
from tcw.compiler.control.recorder import Recorder
from tcw.compiler.control.safely import Safely
from tcw.compiler.graphs.current import current_compile_id, in_bucket
from tcw.compiler.graphs.nodes import user_line
from tcw.compiler.trace.records import DdpBucket, DdpBuckets
from tcw.compiler.trace.source_names import readable

_PART = re.compile(r"(?:compiled_)?submod_(\d{1,6})")


def install(recorder: Recorder) -> Uninstall:
    from torch._dynamo.backends import distributed

    safely = Safely(recorder, HOOK.name)
    running: list[tuple[Any, Any]] = []
    """The optimizers at work, each with its graph."""
    counts: list[int] = []

    @contextmanager
    def compiling(optimizer: Any, gm: Any, *_: Any, **__: Any) -> Iterator[None]:
        running.append((optimizer, gm))
        counts.append(0)
        try:
            yield
        finally:
            running.pop()
            counts.pop()

    def printed(buckets: Any, *_: Any, **__: Any) -> None:
        if running:
            counts[-1] = len(buckets)
            safely(lambda: recorder.emit(buckets_record(*running[-1], buckets)))

    def compiling_part(_compiler: Any, n: Any) -> AbstractContextManager[None]:
        part = _PART.fullmatch(str(n.target)) if n.op == "call_module" else None
        if part is None or not counts:
            return nullcontext()
        return in_bucket(max(counts[-1] - int(part[1]), 1))

    return undo_all(
        around_call(distributed.DDPOptimizer, "compile_fn", compiling),
        before_call(distributed, "pretty_print_buckets", printed),
        around_call(distributed.SubmodCompiler, "run_node", compiling_part),
    )


def buckets_record(optimizer: Any, graph: fx.GraphModule, buckets: Iterable[Any]) -> DdpBuckets:
    """torch has the buckets in the order of the forward."""
    names = _parameter_names(graph)
    first, cap = int(optimizer.first_bucket_cap), int(optimizer.bucket_bytes_cap)
    return DdpBuckets(
        compile_id=current_compile_id(),
        buckets=tuple(
            _bucket(bucket, number, first if number == 1 else cap, names)
            for number, bucket in enumerate(reversed(list(buckets)), 1)
        ),
        bucket_bytes=cap,
        first_bucket_bytes=first,
    )


def _bucket(bucket: Any, number: int, limit: int, names: Mapping[str, str]) -> DdpBucket:
    lines = [
        location for node in bucket.nodes if (location := user_line(node))
    ]  # from the last node on
    extended = int(bucket.opcount_increased_to_capture_external_output)
    return DdpBucket(
        number=number,
        bytes=int(bucket.size),
        limit=limit,
        parameters=tuple(names.get(str(param), str(param)) for param in bucket.params),
        nodes=len(bucket.nodes),
        extended=extended,
        extended_bytes=bucket.size - bucket.paramsize_before_opcount_increase if extended else 0,
        first=lines[-1] if lines else None,
        last=lines[0] if lines else None,
    )


def _parameter_names(graph: fx.GraphModule) -> dict[str, str]:
    """`l_self_layer_weight` -> `self.layer.weight`, where Dynamo says what an input is."""
    found = {}
    for node in graph.graph.nodes:
        source = getattr(node, "_dynamo_source", None)
        if node.op == "placeholder" and source is not None:
            name = source.name() if callable(source.name) else source.name
            found[str(node.target)] = readable(str(name))
    return found


HOOK = RecordingHook(
    name="ddp buckets",
    offers="how DDP's optimizer cut a graph into buckets, and why",
    needs=(
        "torch._dynamo.backends.distributed:DDPOptimizer.compile_fn(gm)",
        "torch._dynamo.backends.distributed:pretty_print_buckets(buckets)",
        "torch._dynamo.backends.distributed:SubmodCompiler.run_node(n)",
    ),
    install=install,
    stage="capture",
    test="capture/test_ddp.py",
)
