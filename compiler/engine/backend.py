"""The backend: AOTAutograd around our compiler, like `compile_fx` around Inductor.

torch/_inductor/compile_fx.py is the model for the settings in force during AOTAutograd.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch import config as functorch_config

from tcw.compiler.control.gate import Gate
from tcw.compiler.engine.autograd_function import short_autograd_functions
from tcw.compiler.engine.compile import compile_graph
from tcw.compiler.engine.partition import partition
from tcw.compiler.engine.recording import current, listening
from tcw.compiler.engine.targets import CUDA_GRAPHS, MODES, Mode
from tcw.compiler.engine.uncompiled import Compiled
from tcw.compiler.engine.unread_texts import without_unread_texts
from tcw.compiler.graphs.current import current_compile_id, graph_id
from tcw.compiler.protocol.override_file import read_overrides
from tcw.compiler.rewrites.decompositions import decompositions
from tcw.compiler.rewrites.order import CAPTURED, rewrite
from tcw.compiler.rewrites.resampling import resampling_whole
from tcw.compiler.rewrites.subject import Subject
from tcw.compiler.trace.records.graph import GraphKind

OPTIONS = ("overrides", CUDA_GRAPHS)
"""`torch.compile(…, backend="tcw", options={"overrides": "FILE.toml"})`."""


class UnknownOption(Exception):
    """`options` contains a key, or `mode` is a word, that this backend does not support."""


def backend(
    graph_module: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Compile what TorchDynamo captured.

    `mode` is Inductor's: `reduce-overhead` and `max-autotune` replay CUDA graphs, as does the
    option `triton.cudagraphs`; `max-autotune` measures the tiles of a GPU's kernels.

    Raises `UnknownOption` and `tcw.compiler.protocol.override_file.OverrideError`.
    """
    gate = _gate(options or {})
    if mode is not None and mode not in MODES:
        raise UnknownOption(f'backend="tcw" has no mode {mode!r}: {", ".join(MODES)}')
    asked = MODES[mode or "default"]
    if (options or {}).get(CUDA_GRAPHS):
        asked = asked._replace(cuda_graphs=True)
    return with_compilers(
        graph_module, example_inputs, lambda kind: _compiler(kind, gate, asked), gate
    )


def with_compilers(
    graph_module: fx.GraphModule,
    example_inputs: Sequence[Any],
    compiler: Callable[[GraphKind], Callable[..., Any]],
    gate: Gate | None = None,
) -> Callable[..., Any]:
    """AOTAutograd as the engine uses it, around what `compiler` returns for each kind of graph."""
    may_train = _may_train(graph_module, example_inputs)
    kind: GraphKind = "forward" if may_train else "inference"
    graph = graph_id(current_compile_id(), kind)
    with _listening(gate):
        subject = Subject(graph_module, example_inputs, graph, current().gate, kind)
        if rewrite(CAPTURED, subject, current().recorder, stage="captured rewrites"):
            graph_module.recompile()
    example_inputs = subject.inputs
    with collection_paused(), _in_force(), resampling_whole(example_inputs):
        return aot_autograd(  # type: ignore[no-any-return]
            fw_compiler=compiler("forward"),
            bw_compiler=compiler("backward"),
            inference_compiler=compiler("inference"),
            partition_fn=partial(partition, gate=gate),
            decompositions=decompositions(may_train),
            keep_inference_input_mutations=True,
        )(graph_module, example_inputs)


def _may_train(module: fx.GraphModule, inputs: Sequence[Any]) -> bool:
    """Whether AOTAutograd will trace a backward."""
    held = (*inputs, *module.parameters(), *module.buffers())
    return torch.is_grad_enabled() and any(
        isinstance(value, torch.Tensor) and value.requires_grad for value in held
    )


backend.__name__ = "tcw"  # torch's messages use this name


def _compiler(kind: GraphKind, gate: Gate | None, mode: Mode) -> Callable[..., Compiled]:
    """The compiler that AOTAutograd calls for graphs of this kind; a backward may come later."""

    def compile(module: fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
        graph = graph_id(current_compile_id(), kind)
        with collection_paused(), _listening(gate):
            return compile_graph(module, inputs, kind=kind, graph=graph, mode=mode)

    return compile


def _gate(options: Mapping[str, Any]) -> Gate | None:
    """A separate gate for this compile, if it was given overrides."""
    for name in options:
        if name not in OPTIONS:
            raise UnknownOption(
                f'backend="tcw" has no option {name!r}: it takes {" and ".join(map(repr, OPTIONS))}'
            )
    file = options.get("overrides")
    return Gate(read_overrides(Path(file))) if file else None


@contextmanager
def _listening(gate: Gate | None) -> Iterator[None]:
    if gate is None:
        yield
    else:
        with listening(current().recorder, gate):
            yield


@contextmanager
def _in_force() -> Iterator[None]:
    """Settings that must be in force while AOTAutograd traces."""
    with (
        torch._dispatch.python.enable_python_dispatcher(),
        functorch_config.patch(unlift_effect_tokens=True),
        without_unread_texts(),
        short_autograd_functions(),
    ):
        yield


@contextmanager
def collection_paused() -> Iterator[None]:
    """No garbage collection inside: a full one costs 150 ms, in the middle of a stage of 5 ms."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
