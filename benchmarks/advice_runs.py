"""A program of `advice_programs/` run eagerly and compiled, with and without a fix, without tcw.

Each run is a forked process, so that torch is imported once and nothing stays behind. The compiled
run uses a backend that runs the captured graph as it is and counts: no code is generated.
"""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import inspect
import io
import logging
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
from torch._dynamo.output_graph import graph_break_reasons
from torch._dynamo.testing import CompileCounter
from torch._dynamo.utils import counters
from torch.utils import _pytree as pytree

from benchmarks.advice_cases import Fix


@dataclass(frozen=True)
class Run:
    """What one run of all calls came to."""

    error: str = ""
    graphs: int = 0
    breaks: int = 0
    compiles: int = 0
    """Frames compiled, also those without a graph."""
    eager: int = 0
    """Frames that torch gave up on."""
    ran: int = 0
    """Operations that ran in compiled graphs, over all calls."""
    differs: str = ""
    """Where the results first differ from those of the eager run, "" if they do not."""
    retyped: str = ""
    """What a collection holds after the calls that is of another type, though equal."""
    printed: str = ""
    reasons: tuple[str, ...] = ()
    """Of graph breaks: torch's words."""
    results: Any = None

    @property
    def counts(self) -> str:
        if self.error:
            return f"raises {self.error.partition(' ')[0].rstrip(':')}"
        counted = {"graph": self.graphs, "break": self.breaks, "compile": self.compiles}
        words = [f"{count} {noun}{'' if count == 1 else 's'}" for noun, count in counted.items()]
        return ", ".join([*words, *([f"{self.eager} eager"] if self.eager else [])])


COLLECTION = "[…]"
"""Behind the name of a list or dictionary in the state of a file."""


class Counting(CompileCounter):
    """Runs captured graphs as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.ran = 0

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        run = super().__call__(gm, example_inputs)
        operations = sum("call" in node.op for node in gm.graph.nodes)

        def counted(*arguments: Any) -> Any:
            self.ran += operations
            return run(*arguments)

        return counted


def pasted(file: Path, fix: Fix, folder: Path) -> Path:
    """A copy of the program in `folder` with the patch applied; ValueError if it does not apply."""
    copied = folder / file.name
    shutil.copyfile(file, copied)
    if fix.patch:
        command = ["patch", "--force", "--fuzz=0", "--reject-file=-", str(copied)]
        done = subprocess.run(command, input=fix.patch, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ValueError(f"the patch does not apply: {done.stdout.strip()[-200:]}")
    return copied


def run(
    file: Path,
    fix: Fix | None = None,
    *,
    train: bool = False,
    eager: Run | None = None,
    seconds: float = 60,
) -> Run:
    """All calls of `file`: eagerly without `fix`, compiled with it, compared with `eager`."""
    receiving, sending = multiprocessing.Pipe(duplex=False)
    arguments = (sending, file, fix, train, eager)
    process = multiprocessing.get_context("fork").Process(target=_child, args=arguments)
    process.start()
    sending.close()
    try:
        if not receiving.poll(seconds):
            return Run(error=f"not done after {seconds:.0f} s")
        done: Run = receiving.recv()
        return done
    except EOFError:
        process.join()
        return Run(error=f"the process ended with {process.exitcode}")
    finally:
        process.kill()
        process.join()


def _child(
    sending: Connection, file: Path, fix: Fix | None, train: bool, eager: Run | None
) -> None:
    os.chdir(file.parent)
    torch.set_num_threads(1)
    torch._logging.set_logs(all=logging.CRITICAL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        done = _run(file, fix, train, eager, printed)
    try:
        sending.send(done)
    except Exception as error:  # results that cannot be pickled
        sending.send(Run(error=f"the results cannot be sent: {error}"))
    sending.close()
    os._exit(0)


def _run(file: Path, fix: Fix | None, train: bool, eager: Run | None, printed: io.StringIO) -> Run:
    counter = Counting()
    results: list[Any] = []
    error = ""
    counters.clear()
    graph_break_reasons.clear()
    try:
        _called(file, fix, train, counter, results)
    except Exception as raised:
        where = traceback.extract_tb(raised.__traceback__)
        lines = [entry.lineno for entry in where if entry.filename == str(file)]
        at = f" at line {lines[-1]}" if lines else ""
        error = f"{type(raised).__name__}{at}: {str(raised).strip().splitlines() or ['']}"[:300]
    differs = other_types = ""
    if eager is not None and not error:
        differs = difference(eager.results, results)
        other_types = retyped(eager.results[-1], results[-1])
    return Run(
        error=error,
        graphs=int(counter.frame_count),
        breaks=len(graph_break_reasons),
        compiles=counters["frames"]["ok"],
        eager=counters["frames"]["total"] - counters["frames"]["ok"],
        ran=counter.ran,
        reasons=(*(one.reason for one in graph_break_reasons), *map(str, counters["graph_break"])),
        differs=differs,
        retyped=other_types,
        printed=printed.getvalue(),
        results=results if eager is None else None,
    )


def _called(
    file: Path, fix: Fix | None, train: bool, counter: Counting, results: list[Any]
) -> None:
    _seed()
    names: dict[str, Any] = {"torch": torch}
    settings = fix.settings if fix else ()
    with _compiling_with(counter, fix) as compiled:
        if not is_model(file):
            _settle(settings, names)
            results.append(_state(_loaded(file)))
            return
        module = _loaded(file)
        model = module.model
        _settle(settings, vars(module))
        if fix is not None and not compiled:
            model = torch.compile(model)
    plain = getattr(model, "_orig_mod", model)
    signature = inspect.signature(plain.forward if isinstance(plain, torch.nn.Module) else plain)
    inputs = module.example_inputs
    inputs = inputs() if callable(inputs) else inputs
    _seed()
    for arguments in inputs if isinstance(inputs, list) else [inputs]:
        args, kwargs = copy.deepcopy(_arguments(arguments))
        passed = args, kwargs
        if fix is not None and fix.before_calls:
            args, kwargs = _prepared(module, signature, fix.before_calls, args, kwargs)
        outputs = model(*args, **kwargs)
        if train:
            _loss(outputs).backward()
        results.append(_plain((outputs, *passed)))
    results.append(_state(module))


def is_model(file: Path) -> bool:
    """Whether the file defines `model`; a script compiles and calls by itself."""
    return "\nexample_inputs = " in file.read_text(encoding="utf-8")


def _settle(lines: tuple[str, ...], names: dict[str, Any]) -> None:
    for line in lines:
        exec(line, names)


def _seed() -> None:
    torch.manual_seed(0)
    random.seed(0)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(0)


@contextlib.contextmanager
def _compiling_with(counter: Counting, fix: Fix | None) -> Iterator[list[Any]]:
    """`torch.compile` of a program that calls it itself: with our backend and the fix's options, or
    not at all; the list is filled if it is called."""
    theirs = torch.compile
    called: list[Any] = []

    def compile(model: Any = None, **options: Any) -> Any:
        called.append(model)
        if fix is None:
            return (lambda given: given) if model is None else model
        for name in ("backend", "mode", "options"):
            options.pop(name, None)
        return theirs(model, **{**options, "backend": counter, **fix.compile})

    torch.compile = compile
    try:
        yield called
    finally:
        if fix is not None:
            torch.compile = theirs


def _loaded(file: Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module


def _arguments(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(inputs, dict):
        return (), inputs
    if len(inputs) == 2 and isinstance(inputs[0], tuple) and isinstance(inputs[1], dict):
        return inputs[0], inputs[1]
    return inputs, {}


def _prepared(
    module: types.ModuleType,
    signature: inspect.Signature,
    lines: tuple[str, ...],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    bound = signature.bind(*args, **kwargs)
    names = {**vars(module), **bound.arguments}
    for line in lines:
        exec(line, names)
    bound.arguments = {name: names[name] for name in bound.arguments}
    return bound.args, bound.kwargs


def _loss(outputs: Any) -> torch.Tensor:
    tensors = [leaf for leaf in pytree.tree_leaves(outputs) if isinstance(leaf, torch.Tensor)]
    return sum((one.float().sum() for one in tensors if one.requires_grad), torch.zeros(()))


def _plain(value: Any) -> list[Any]:
    """The leaves: tensors detached with their gradients, numbers and texts as they are, the type's
    name of anything else."""
    leaves: list[Any] = []
    for leaf in pytree.tree_leaves(value):
        if isinstance(leaf, torch.Tensor):
            # sent between processes by value: no shared memory
            grad = leaf.grad if leaf.is_leaf else None
            leaves += [_array(leaf), *([_array(grad)] if grad is not None else [])]
        elif isinstance(leaf, (bool, int, float, complex, str, bytes, type(None))):
            leaves.append(leaf)
        else:
            leaves.append(type(leaf).__name__)
    return leaves


def _array(tensor: torch.Tensor) -> Any:
    buffer = io.BytesIO()
    torch.save(tensor.detach().clone(), buffer)
    return _Tensor(buffer.getvalue())


@dataclass(frozen=True)
class _Tensor:
    saved: bytes

    def tensor(self) -> torch.Tensor:
        loaded: torch.Tensor = torch.load(io.BytesIO(self.saved), weights_only=True)
        return loaded


def _state(module: types.ModuleType) -> dict[str, Any]:
    """Tensors, numbers and collections of the file, and of its models, after the calls."""
    state: dict[str, Any] = {}
    for name, value in vars(module).items():
        if name.startswith("__") or name == "example_inputs":
            continue
        value = getattr(value, "_orig_mod", value)
        if isinstance(value, torch.nn.Module):
            for key, tensor in [*value.named_parameters(), *value.named_buffers()]:
                state[f"{name}.{key}"] = _plain(tensor)
            for owner, part in value.named_modules():
                for key, held in vars(part).items():
                    if isinstance(held, (int, float, str, torch.Tensor)) and key[0] != "_":
                        state[f"{name}.{owner}.{key}"] = _plain(held)
        elif isinstance(value, (list, dict)):
            state[name + COLLECTION] = _plain(value)
        elif isinstance(value, (int, float, str, torch.Tensor)):
            state[name] = _plain(value)
    return state


def difference(expected: list[Any], seen: list[Any]) -> str:
    """Where the results of two runs first differ; "" if nowhere. In the state of the file, a number
    may have become a tensor."""
    if len(expected) != len(seen):
        return f"{len(seen) - 1} of {len(expected) - 1} calls"
    for number, (one, other) in enumerate(zip(expected[:-1], seen[:-1], strict=True), 1):
        if said := _differs(one, other, exact_types=True):
            return f"call {number}: {said}"
    for name in expected[-1].keys() & seen[-1].keys():
        if said := _differs(expected[-1][name], seen[-1][name], exact_types=False):
            return f"{name} after the calls: {said}"
    return ""


def retyped(expected: dict[str, Any], seen: dict[str, Any]) -> str:
    """A list or dictionary of the file that got tensors for numbers; "" if there is none."""
    for name in expected.keys() & seen.keys():
        if name.endswith(COLLECTION) and _differs(expected[name], seen[name], exact_types=True):
            return name.removesuffix(COLLECTION)
    return ""


def _differs(expected: list[Any], seen: list[Any], exact_types: bool) -> str:
    if len(expected) != len(seen):
        return f"{len(seen)} values instead of {len(expected)}"
    for one, other in zip(expected, seen, strict=True):
        one, other = (
            value.tensor() if isinstance(value, _Tensor) else value for value in (one, other)
        )
        if isinstance(one, torch.Tensor) != isinstance(other, torch.Tensor):
            if exact_types or isinstance(one, torch.Tensor):
                return f"{type(other).__name__} instead of {type(one).__name__}"
            other = other.item() if other.numel() == 1 else other.tolist()
        try:
            if isinstance(one, (torch.Tensor, float)):
                torch.testing.assert_close(other, one, equal_nan=True)
            elif one != other:
                return f"{other!r} instead of {one!r}"[:120]
        except (AssertionError, TypeError) as error:
            return " ".join(str(error).split())[:160]
    return ""
