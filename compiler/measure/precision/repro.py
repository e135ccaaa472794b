"""A kernel's part of the graph as a standalone file that reproduces the kernel's error.

The file imports torch alone. It has the nodes that the kernel computes, as ATen calls below the
user's lines, inputs similar to the real ones, and the bounds for these inputs.
"""

from __future__ import annotations

import math
import operator
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import fx

from tcw.compiler.graphs.nodes import source_comment
from tcw.compiler.measure.precision import operations
from tcw.compiler.measure.precision.arithmetic import NotComparable
from tcw.compiler.measure.precision.evaluate import Evaluator
from tcw.compiler.measure.precision.judge import judge
from tcw.compiler.measure.precision.repro_inputs import (
    DRAWN,
    STORED,
    STORED_BYTES,
    Drawing,
    InputText,
    number,
    stored,
)
from tcw.compiler.measure.precision.verify import KernelCut, compared_values
from tcw.compiler.trace.records import Kernel

_HEAD = '''"""{title}

{words}
Run it with `python {name}`: it compiles these operations alone with backend="{engine}", compares
the results with float64, and exits with status 1 if one is off by more than rounding explains.
"""

{imports}
import torch
{extra}
aten = torch.ops.aten


def kernel({parameters}):
{body}
    return ({results},)

{makers}
def inputs():
    return [
{arguments}
    ]


BOUNDS = {bounds}
"""Of each result: the largest error that rounding explains, relative to the largest value; the
share by which all of it may be off to one side; how many elements rounding alone may decide."""

'''
_TAIL = '''
class Double(torch.overrides.TorchFunctionMode):
    """Every operation in float64."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        def wide(value):
            if isinstance(value, (list, tuple)):
                return type(value)(map(wide, value))
            if isinstance(value, torch.dtype):
                return torch.float64 if value.is_floating_point else value
            floats = isinstance(value, torch.Tensor) and value.is_floating_point()
            return value.double() if floats else value

        with torch._C.DisableTorchFunction():
            kwargs = kwargs or {}
            if any(isinstance(one, torch.Tensor) for one in torch.utils._pytree.tree_leaves(args)):
                args = wide(list(args))
                kwargs = {name: wide(value) for name, value in kwargs.items()}
            return wide(function(*args, **kwargs))


def errors(result, exact):
    """(largest error, how far all of it is off to one side, elements that are off)"""
    if not result.is_floating_point():
        different = int((result != exact).sum())
        return different / max(result.numel(), 1), 0.0, lambda bound: different
    result, exact = result.double(), exact.double()
    same = (result == exact) | (result.isnan() & exact.isnan())
    finite = exact.isfinite()
    scale = exact[finite].abs().max().item() if finite.any() else 0.0
    error = torch.where(same, 0.0, (result - exact).abs() / (scale or 1.0))
    error = torch.where(error.isfinite(), error, float("inf"))
    both = finite & result.isfinite()
    r, d = exact[both], (result - exact)[both]
    square, count = (r * r).sum().item() or 1.0, max(r.numel(), 1)
    lean = max(abs((d * r).sum().item()) / square, abs(d.sum().item()) / (square * count) ** 0.5)
    largest = error.max().item() if error.numel() else 0.0
    return largest, lean, lambda bound: int((error > bound).sum())


def main():
    given = inputs()
    copies = lambda: [x.clone() if isinstance(x, torch.Tensor) else x for x in given]
    with torch.no_grad():
        compiled = torch.compile(kernel, backend="{engine}")(*copies())
        eager = kernel(*copies())
        with Double():
            exact = kernel(*copies())
    wrong = False
    print(f"{{'result':24}} {{'compiled':>10}} {{'eager':>10}} {{'bound':>10}}")
    for name, ours, theirs, right in zip(BOUNDS, compiled, eager, exact):
        bound, lean_bound, jumps = BOUNDS[name]
        error, lean, off = errors(ours, right)
        eager_error, eager_lean, _ = errors(theirs, right)
        bad = off(max(bound, 2 * eager_error)) > jumps or lean > max(lean_bound, 4 * eager_lean)
        wrong |= bad
        note = "WRONG" if bad else ""
        print(f"{{name:24}} {{error:10.2e}} {{eager_error:10.2e}} {{bound:10.2e}} {{note}}")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
'''
SECONDS = 300.0
_RUN = """
import runpy, sys
from torch._dynamo.backends import registry
from tcw.compiler.engine.backend import backend
registry._COMPILER_FNS.pop("tcw", None)
registry.register_backend(backend, name="tcw")
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run."""

    shows: bool | None
    """None if it did not run to its end."""
    words: str
    """Its output, or what went wrong."""


def tried(text: str, seconds: float = SECONDS) -> RunOutcome:
    """Run a file's text in a separate process."""
    root = str(Path(__file__).parents[3])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""))))
    with tempfile.TemporaryDirectory(prefix="tcw-repro-") as folder:
        file = Path(folder) / "repro.py"
        file.write_text(text, encoding="utf-8")
        try:
            done = subprocess.run(
                [sys.executable, "-c", _RUN, str(file)],
                capture_output=True,
                text=True,
                timeout=seconds,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": path},
                check=False,
            )
        except subprocess.TimeoutExpired:
            return RunOutcome(None, f"it ran for more than {seconds:.0f} s")
    if done.returncode in (0, 1) and done.stdout.startswith("result"):
        return RunOutcome(done.returncode == 1, done.stdout)
    words = (done.stderr.strip() or done.stdout.strip() or f"status {done.returncode}").splitlines()
    return RunOutcome(None, words[-1][:300])


def repros(
    module: fx.GraphModule, cut: KernelCut, kernel: Kernel, engine: str, words: str = ""
) -> Iterable[str]:
    """The text of the file with drawn inputs, then with the exact values if they are not too large.

    Raises `NotComparable` if the nodes cannot be written to a file.
    """
    evaluator = Evaluator(module)
    results = list(cut.results)
    drawing = Drawing()
    tensors = {node: value for node, value in cut.inputs.items() if isinstance(value, torch.Tensor)}
    makers: list[tuple[bool, Callable[[torch.Tensor], InputText]]] = [(True, drawing.of)]
    if sum(value.untyped_storage().nbytes() for value in tensors.values()) <= STORED_BYTES:
        makers.append((False, stored))
    for drawn, make in makers:
        given = {node: make(value) for node, value in tensors.items()}
        known = {**cut.inputs, **{node: text.value for node, text in given.items()}}
        try:
            bounds = _bounds(evaluator, cut.order, known, results)
        except (NotComparable, RuntimeError, IndexError):
            if drawn:
                continue  # drawn numbers may be outside a valid range
            raise
        yield _text(evaluator, cut, kernel, engine, words, given, bounds)


def _bounds(
    evaluator: Evaluator,
    order: list[fx.Node],
    inputs: Mapping[fx.Node, Any],
    results: list[fx.Node],
) -> dict[str, tuple[float, float, int]]:
    """The bounds for these inputs."""
    found = compared_values(evaluator, order, inputs, dict.fromkeys(results))
    judged = {node.name: judge(value) for node, value in found.items()}
    return {
        name: (verdict.bound, verdict.lean_bound or math.inf, 2 * verdict.jumps)
        for name, verdict in judged.items()
    }


def _text(
    evaluator: Evaluator,
    cut: KernelCut,
    kernel: Kernel,
    engine: str,
    words: str,
    given: Mapping[fx.Node, InputText],
    bounds: Mapping[str, tuple[float, float, int]],
) -> str:
    names = _names([*given, *cut.order])
    body = _body(evaluator, cut, names)
    texts = [text.expression for text in given.values()]
    makers = (DRAWN if any("drawn(" in text for text in texts) else "") + (
        "\n" + STORED if any("stored(" in text for text in texts) else ""
    )
    whole = "\n".join(body)
    head = _HEAD.format(
        title=_plain(f"{kernel.id} {kernel.name} ({kernel.label}) of graph {kernel.graph}"),
        words=_plain(words) + f"\nCut out by tcw; torch {torch.__version__}.",
        name=f"repro_{kernel.id}.py",
        engine=engine,
        imports=_imports(whole, makers),
        extra="import torch._inductor.inductor_prims\n" if "torch.ops.prims" in whole else "",
        parameters=", ".join(names[node] for node in given),
        body=whole,
        results=", ".join(names[node] for node in cut.results),
        makers=makers + "\n" if makers else "",
        arguments="\n".join(
            f"        {text.expression},  # {names[node]}" for node, text in given.items()
        ),
        bounds="{\n"
        + "".join(
            f'    "{name}": ({number(bound)}, {number(lean)}, {jumps}),\n'
            for name, (bound, lean, jumps) in bounds.items()
        )
        + "}",
    )
    return head + _TAIL.replace("{engine}", engine).replace("{{", "{").replace("}}", "}")


def _imports(body: str, makers: str) -> str:
    names = ["sys"]
    names += ["operator"] if "operator." in body else []
    names += ["base64", "zlib"] if "stored(" in makers else []
    return "".join(f"import {name}\n" for name in sorted(names))


def _body(evaluator: Evaluator, cut: KernelCut, names: Mapping[fx.Node, str]) -> list[str]:
    lines: list[str] = []
    place = ""
    for node in cut.order:
        here = _plain(source_comment(node))
        if here and here != place:
            place = here
            lines.append(f"    # {here}")
        lines.append(f"    {names[node]} = {_call(evaluator, cut, node, names)}")
    return lines


def _call(evaluator: Evaluator, cut: KernelCut, node: fx.Node, names: Mapping[fx.Node, str]) -> str:
    def argument(value: Any) -> str:
        if isinstance(value, fx.Node):
            source = evaluator.read_by(node, value)
            if source in names:
                return names[source]
            return _literal(cut.inputs[source])
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(argument(one) for one in value)}]"
        return _literal(value)

    if node.op == "get_attr":
        value = operator.attrgetter(str(node.target))(evaluator.module)
        if not isinstance(value, torch.Tensor) or value.numel() > 4096:
            raise NotComparable(f"the constant {node.target} is too large for a file")
        return stored(value.detach()).expression
    target = node.target
    arguments = [argument(value) for value in node.args]
    if target is operator.getitem:
        return f"{arguments[0]}[{arguments[1]}]"
    if not operations.is_operation(target):
        module, name = getattr(target, "__module__", ""), getattr(target, "__name__", "")
        if module in ("_operator", "operator"):
            return f"operator.{name}({', '.join(arguments)})"
        if module.startswith("torch"):
            return f"torch.{name}({', '.join(arguments)})"
        raise NotComparable(f"{target} cannot be written into a file")
    if target is torch.ops.aten.view.default:
        target = torch.ops.aten.reshape.default
    for place, _ in operations.written(target):
        if place < len(arguments):
            arguments[place] += ".clone()"
    arguments += [f"{name}={argument(value)}" for name, value in node.kwargs.items()]
    called = str(target) if str(target).startswith("aten.") else f"torch.ops.{target}"
    return f"{called}({', '.join(arguments)})"


def _names(nodes: Sequence[fx.Node]) -> dict[fx.Node, str]:
    """Variable names in the file: those of the nodes."""
    taken = {"aten", "torch", "sys", "kernel", "inputs", "drawn", "stored", "zlib", "base64"}
    found: dict[fx.Node, str] = {}
    for node in nodes:
        name = node.name if node.name.isidentifier() else "value"
        while name in taken:
            name += "_"
        taken.add(name)
        found[node] = name
    return found


def _literal(value: Any) -> str:
    if isinstance(value, float):
        return number(value)
    if isinstance(value, torch.device):
        return f'torch.device("{value}")'
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return str(value)
    if value is None or isinstance(value, (bool, int, str, complex)):
        return repr(value)
    raise NotComparable(f"an argument {value!r:.80} cannot be written into a file")


def _plain(text: str) -> str:
    """On one line, without anything that ends a comment or docstring."""
    return (
        "".join(one if one.isprintable() else " " for one in text)
        .replace('"""', "'''")
        .replace("\\", "/")
    )
