"""Sums at indices on a GPU are float32 until all is added."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx

from tcw.compiler.control.gate import Gate
from tcw.compiler.rewrites.subject import Subject
from tcw.compiler.rewrites.wide_sums import wide_sums

aten = torch.ops.aten
BF16 = torch.bfloat16

CASES = {
    "index_put": lambda x, i, v: aten.index_put(x, [i], v, True),
    "_unsafe_index_put": lambda x, i, v: aten._unsafe_index_put(x, [i], v, True),
    "masked": lambda x, i, v: aten._unsafe_masked_index_put_accumulate(x, v > 0, [i], v),
    "index_add": lambda x, i, v: x.index_add(0, i, v),
    "scatter_add": lambda x, i, v: x.scatter_add(0, i, v),
    "scatter_reduce": lambda x, i, v: x.scatter_reduce(0, i, v, "sum"),
    "mean": lambda x, i, v: x.scatter_reduce(0, i, v, "mean", include_self=False),
    "embedding": lambda x, i, v: aten.embedding_dense_backward(v[:, None], i, 4, -1, False),
}
COUNT = 1000

PROGRAM = """
import json, sys, torch
from tcw.compiler.engine.compile import load_families
from tcw.compiler.fusion.weights import GPU
from tests.cpu.codegen.nests import programs
from tests.cpu.codegen.triton_interpreter import run
from tests.cpu.engine.test_wide_sums import BF16, CASES, inputs

load_families()
for name, function in CASES.items():
    for dtype in (BF16, torch.float16):
        (program,) = programs(function, *inputs(dtype), machine=GPU)
        (found,) = run(program, inputs(dtype))
        print(json.dumps([name, str(found.dtype), found.flatten().tolist()]))
"""


def inputs(dtype: torch.dtype = BF16) -> tuple[torch.Tensor, ...]:
    """Nothing, and ones that all go to its first element."""
    return (
        torch.zeros(4, dtype=dtype),
        torch.zeros(COUNT, dtype=torch.int64),
        torch.ones(COUNT, dtype=dtype),
    )


@pytest.mark.long
def test_a_thousand_ones_are_a_thousand() -> None:
    """In Triton's interpreter. In bfloat16, their sum stops at 256."""
    pytest.importorskip("triton")
    command = [sys.executable, "-c", PROGRAM]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == 2 * len(CASES)
    for name, dtype, values in found:
        assert values == [1 if name == "mean" else 1000, 0, 0, 0], (name, dtype)


def graph_of(function, *given: torch.Tensor) -> fx.GraphModule:
    return make_fx(function, tracing_mode="fake")(*given)


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("masked", "embedding")])
def test_only_16_bit_sums_change(name: str) -> None:
    x, i, v = inputs()
    assert wide_sums(Subject(graph_of(CASES[name], x, i, v))) == 1
    assert wide_sums(Subject(graph_of(CASES[name], x.float(), i, v.float()))) == 0


def test_what_does_not_add_stays() -> None:
    x, i, v = inputs()
    assert wide_sums(Subject(graph_of(lambda x, i, v: aten.index_put(x, [i], v), x, i, v))) == 0
    assert (
        wide_sums(
            Subject(
                graph_of(lambda x, i, v: x.scatter_reduce(0, i, v, "amax"), x, i, v), gate=Gate()
            )
        )
        == 0
    )


def test_readers_and_outputs_get_the_dtype_that_they_expect() -> None:
    module = graph_of(lambda x, i, v: x.index_add(0, i, v) * 2, *inputs())
    before = [node.meta["val"].dtype for node in module.graph.nodes if "val" in node.meta][-1]
    wide_sums(Subject(module))
    module.recompile()
    module.graph.lint()
    found = module(*inputs())
    assert found.dtype == before == BF16
    assert found.tolist() == [2000, 0, 0, 0]
