"""Groups of models, and the sample models, in Triton's interpreter against eager.

    TRITON_INTERPRET=1 python -m tests.cpu.codegen.interpreted_models --modules FOLDER groups gpt

Without names it takes them from its input, one a line. One JSON line for each name: what is wrong,
by group or model and dtype ("" if nothing is). Sample models run forward and backward, with few
rows; what is no loop runs on ATen. With `--modules`, all kernels as they are for each architecture
are left in a folder.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import runpy
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import torch
from functorch.compile import make_boxed_func
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch.utils import _pytree as pytree

from tcw.compiler.codegen.triton.limits import Limits
from tcw.compiler.codegen.triton.triton_unit import unit
from tcw.compiler.codegen.unit import DeviceKernel
from tcw.compiler.engine.compile import load_families
from tcw.compiler.engine.partition import partition
from tcw.compiler.fusion.fuse import fuse
from tcw.compiler.fusion.weights import GPU
from tcw.compiler.gpu.architectures import ARCHITECTURES
from tcw.compiler.loops.nest import Program
from tcw.compiler.lowering.driver import lower
from tcw.compiler.rewrites.decompositions import decompositions
from tcw.compiler.rewrites.subject import Subject
from tcw.compiler.rewrites.wide_sums import wide_sums
from tests.cpu.codegen.model_groups import GROUPS
from tests.cpu.codegen.nests import programs

DTYPES = ("float32", "bfloat16")
FOLDER = Path(__file__).parents[3] / "sample_models"
SAMPLES = (
    "attention_mask", "break_in_chain", "custom_op", "dynamic_shapes", "float_argument", "gpt",
    "graph_breaks", "llama_block", "pointwise_chain", "recompiles", "resnet_block",
    "softmax_layernorm", "training_step", "transformer_block", "troubled_block",
)  # fmt: skip
ROWS = 16
"""Of inputs with many rows, which run alike."""
INDICES = 2
"""Integers are below this, so that they are indices of whatever a group reads."""


def group(name: str, dtype: str) -> tuple[Callable[..., Any], list[torch.Tensor]]:
    """A group's function and inputs; its float32 is `dtype`."""
    function, forms = GROUPS[name]
    real = getattr(torch, dtype)
    generator = torch.Generator().manual_seed(0)
    made = []
    for sizes, strides, form in forms:
        kind = real if form is torch.float32 else form
        count = 1 + sum((n - 1) * step for n, step in zip(sizes, strides, strict=True))
        if kind.is_floating_point:
            flat = torch.rand(count, generator=generator) + 0.5
        else:
            flat = torch.randint(0, INDICES, (count,), generator=generator)
        made.append(flat.to(kind).as_strided(sizes, strides))
    return partial(function, real=real), made


class Module(msgspec.Struct):
    """The kernels of a graph for one architecture."""

    arch: str
    text: str
    kernels: list[DeviceKernel]


_modules: list[Module] = []
"""Of what ran since they were last written."""


def run(program: Program, arguments: Sequence[Any]) -> list[Any]:
    """The outputs of a program in the interpreter. Its kernels are kept."""
    from tests.cpu.codegen import triton_interpreter

    for name, architecture in ARCHITECTURES.items():
        device = unit(None, program, Limits(architecture, program.graph.hints)).device
        assert device is not None
        if device.kernels:
            _modules.append(Module(name, device.text, list(device.kernels)))
    return triton_interpreter.run(program, arguments)


def of_group(name: str, dtype: str) -> str:
    """How a group differs from eager; "" if it does not."""
    function, inputs = group(name, dtype)
    expected = pytree.tree_leaves(function(*inputs))
    wide, _ = group(name, "float64")
    exact = pytree.tree_leaves(wide(*[a.double() if a.is_floating_point() else a for a in inputs]))
    found: list[Any] = []
    for program in programs(function, *inputs, machine=GPU):
        found += run(program, group(name, dtype)[1])
    return differs(found, expected, exact, low=dtype == "bfloat16")


def differs(
    found: Sequence[Any], expected: Sequence[Any], exact: Sequence[Any], *, low: bool
) -> str:
    """What is neither close to eager's result nor at least as close to float64's. `low`: products
    are in bfloat16."""
    for place, (one, other, right) in enumerate(zip(found, expected, exact, strict=True)):
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"output {place}: {one.dtype} {tuple(one.shape)}"
        bound = 2e-2 if low else 2e-5
        largest = max(1.0, other.double().abs().max().item() if other.numel() else 0.0)
        try:
            torch.testing.assert_close(one, other, rtol=bound, atol=bound * largest, equal_nan=True)
        except AssertionError as error:
            errors = [(t.double() - right.double()).abs().max().item() for t in (one, other)]
            if not errors[0] <= errors[1]:
                return f"output {place}: {' '.join(str(error).split())} {errors}"
    return ""


def calls_of(sample: str) -> tuple[Any, list[tuple[Any, ...]]]:
    """A sample model, and the arguments of its calls."""
    torch.manual_seed(0)
    space = runpy.run_path(str(FOLDER / f"{sample}.py"))
    given = space["example_inputs"]
    given = given() if callable(given) else given
    given = list(given) if isinstance(given, list) else [given]
    calls = [one if isinstance(one, tuple) else (one,) for one in given]
    if sample == "attention_mask":
        calls = [(x[:, :ROWS], reach[:, :ROWS, :ROWS]) for x, reach in calls]
    if sample == "troubled_block":  # six graphs, each compiled for four calls
        calls = [(x[:, :ROWS], *others) for x, *others in calls]
    return space["model"], [pytree.tree_map_only(torch.Tensor, _few_rows, call) for call in calls]


def _few_rows(tensor: torch.Tensor) -> torch.Tensor:
    """The interpreter takes milliseconds for each program."""
    return tensor[:ROWS] if tensor.dim() and tensor.shape[0] > 2 * ROWS else tensor


def results(model: Any, arguments: Sequence[Any]) -> list[torch.Tensor]:
    """Outputs, and gradients if there are any."""
    leaves = (
        [p for p in model.parameters() if p.requires_grad] if hasattr(model, "parameters") else []
    )
    outputs = [o for o in pytree.tree_leaves(model(*arguments)) if isinstance(o, torch.Tensor)]
    roots = [o.float().square().mean() for o in outputs if o.requires_grad]
    found = [o.detach().clone() for o in outputs]
    if roots and leaves:
        gradients = torch.autograd.grad(sum(roots), leaves, allow_unused=True)
        found += [gradient for gradient in gradients if gradient is not None]
    return found


def of_sample(sample: str, dtype: str) -> str:
    """How a sample model differs from eager; "" if it does not."""

    def compiler(module: fx.GraphModule, inputs: Sequence[Any]) -> Any:
        wide_sums(Subject(module))
        program = fuse(lower(module, "graph"), machine=GPU).program
        return make_boxed_func(lambda *given: run(program, given))

    backend = aot_autograd(
        fw_compiler=compiler,
        bw_compiler=compiler,
        inference_compiler=compiler,
        partition_fn=partial(partition, gate=None),
        decompositions=decompositions(),
        keep_inference_input_mutations=True,
    )

    def all_results(kind: str, compile_it: bool) -> Iterator[torch.Tensor]:
        model, calls = calls_of(sample)
        real = torch.float32 if autocast and kind == dtype else getattr(torch, kind)
        model = model.to(real) if isinstance(model, torch.nn.Module) else model
        called = torch.compile(model, backend=backend) if compile_it else model
        for arguments in calls:
            torch.manual_seed(1)
            given = pytree.tree_map_only(
                torch.Tensor, lambda t: t.to(real) if t.is_floating_point() else t, arguments
            )
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast and kind == dtype):
                yield from results(called, given)

    torch._dynamo.reset()
    autocast = False
    try:
        expected = list(all_results(dtype, compile_it=False))
    except RuntimeError:  # a model that mixes its dtypes: as users train it
        autocast = True
        expected = list(all_results(dtype, compile_it=False))
    try:
        exact = list(all_results("float64", compile_it=False))
    except RuntimeError:  # a model that converts to float32 itself
        exact = expected
    found = list(all_results(dtype, compile_it=True))
    return differs(found, expected, exact, low=dtype == "bfloat16")


def wrong(name: str) -> dict[str, str]:
    """What is wrong with each group, if that is the name, or with a sample model."""
    found = {}
    for one in GROUPS if name == "groups" else [name]:
        for dtype in DTYPES:
            try:
                with contextlib.redirect_stdout(sys.stderr):  # what models print
                    words = (of_group if name == "groups" else of_sample)(one, dtype)
            except Exception:
                words = traceback.format_exc()[-2000:]
            found[f"{one} {dtype}"] = words
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="groups and samples in Triton's interpreter")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--modules", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    load_families()
    for name in given.names or (line.strip() for line in sys.stdin):
        print(json.dumps(wrong(name)), flush=True)
        if given.modules:
            (given.modules / f"{name}.json").write_bytes(msgspec.json.encode(_modules))
        _modules.clear()


if __name__ == "__main__":
    main()
