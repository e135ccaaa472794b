"""What the calls of a trial leave: outputs, gradients, and the state of the model and its file.

The trial without a fix writes it to a file of the recording; each trial with one compares with it.
"""

from __future__ import annotations

import functools
import hashlib
import math
import mmap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from inspect import isfunction
from typing import Any

import msgspec
import torch
from torch._dynamo import eval_frame

from tcw.compiler.control.hooks import Hook, during, patch
from tcw.compiler.measure.calls.inputs import InputSet
from tcw.compiler.measure.calls.leaves import leaves
from tcw.compiler.measure.calls.runs import PreparedRun
from tcw.compiler.measure.precision.reference import OutputComparison
from tcw.compiler.trace.records import Numerics

MOST_BYTES = 256 << 20
"""Tensors beyond this are compared by their hash alone: they are equal or not."""
_PLAIN = (bool, int, float, str, type(None))


HOOK = Hook(
    name="results of calls",
    offers="what a script's compiled calls return, to compare them with and without a fix",
    needs=(
        "torch._dynamo.eval_frame:_TorchDynamoContext.__call__(fn)",
        "torch._dynamo.eval_frame:OptimizeContext",
    ),
    test="worker/test_fix_trials.py",
)


class Stored(msgspec.Struct):
    """A value in the file, without a tensor's bytes."""

    call: int
    """0 for the state after all calls."""
    path: str
    dtype: str = ""
    """torch's name; "" if it is no tensor."""
    shape: tuple[int, ...] = ()
    bytes: int = 0
    value: bool | int | float | str | None = None


class CallResults:
    """Collects the values of a trial, by call and path; see `EngineCalls.observer`."""

    def __init__(self) -> None:
        self._values: list[tuple[int, str, Any]] = []
        self._bytes = 0

    def remember(self) -> None:
        """Nothing: no second run follows."""

    def compare(self, call: int, inputs: InputSet, run: PreparedRun, outputs: Any) -> None:
        """Keep what one call returned and changed."""
        result = run.result(outputs)
        self.returned(call, result.outputs)
        for path, value in result.gradients:
            self._add(call, path, value)
        given = dict(leaves((inputs.positional, inputs.keyword), "inputs"))
        for path, value in leaves(run.passed or (run.positional, run.keyword), "inputs"):
            before = given.get(path)
            both = isinstance(before, torch.Tensor) and isinstance(value, torch.Tensor)
            if both and not _equal(before, value):
                self._add(call, f"{path} after the call", value)

    def returned(self, call: int, outputs: Any) -> None:
        """Keep what one call returned."""
        for path, value in leaves(outputs):
            self._add(call, path, value)
            if isinstance(value, torch.Tensor):
                self._add(call, f"{path}.requires_grad", value.requires_grad)

    def add_state(self, names: Mapping[str, Any]) -> None:
        """Keep the state of everything that these names hold, after all calls."""
        seen: set[int] = set()
        for name, value in list(names.items()):
            for path, leaf in _state(name, value, seen):
                self._add(0, path, leaf)

    def _add(self, call: int, path: str, value: Any) -> None:
        if isinstance(value, torch.Tensor):
            try:
                value = value.detach().to_dense() if value.layout is not torch.strided else value
                value = value.detach().cpu().contiguous().clone()
            except (RuntimeError, NotImplementedError):
                value = type(value).__name__
        elif not isinstance(value, _PLAIN):
            value = type(value).__name__
        if isinstance(value, torch.Tensor) and self._bytes + value.nbytes > MOST_BYTES:
            value = hashlib.blake2b(_bytes(value)).hexdigest()
        elif isinstance(value, torch.Tensor):
            self._bytes += value.nbytes
            if call == 0 and value.dim() == 0 and "[" not in path:
                # an attribute or a name that a fix keeps in a tensor is the same state; what the
                # program collects as numbers is not
                value = value.item()
        self._values.append((call, path, str(value) if _has_no_json(value) else value))

    def write(self, descriptor: int) -> None:
        """Write the values to an empty file."""
        stored = []
        data: list[bytes] = []
        for call, path, value in self._values:
            if isinstance(value, torch.Tensor):
                raw = _bytes(value)
                data.append(raw)
                dtype = str(value.dtype).removeprefix("torch.")
                stored.append(Stored(call, path, dtype, tuple(value.shape), len(raw)))
            else:
                stored.append(Stored(call, path, value=value))
        head = msgspec.json.encode(stored)
        with open(descriptor, "wb", closefd=False) as stream:
            stream.write(len(head).to_bytes(8, "little") + head)
            for raw in data:
                stream.write(raw)

    def against(self, descriptor: int) -> Numerics | None:
        """These values against those in the file; None if it is empty."""
        before = _read(descriptor)
        if not before:
            return None
        comparison = OutputComparison()
        mine: dict[int, dict[str, Any]] = {}
        for call, path, value in self._values:
            mine.setdefault(call, {})[path] = value
        for call, theirs in sorted(before.items()):
            ours = mine.get(call, {})
            if not call:  # a fix may keep more, as in a buffer
                ours = {path: value for path, value in ours.items() if path in theirs}
            comparison.add(call, list(ours.items()), list(theirs.items()))
        return comparison.record()


@contextmanager
def of_compiled_calls(results: CallResults) -> Iterator[None]:
    """Keep what the compiled calls of a script return: of the outermost ones, in their order."""
    if HOOK.missing():
        yield
        return
    original = eval_frame._TorchDynamoContext.__call__
    inside = False
    count = 0

    def call(context: Any, function: Any) -> Any:
        made = original(context, function)
        # a module is compiled through its `forward`, which comes here as well
        if not isinstance(context, eval_frame.OptimizeContext) or not isfunction(made):
            return made

        @functools.wraps(made)
        def watched(*positional: Any, **keyword: Any) -> Any:
            nonlocal inside, count
            if inside or torch.compiler.is_compiling():
                return made(*positional, **keyword)
            inside = True
            try:
                outputs = made(*positional, **keyword)
            finally:
                inside = False
            count += 1
            results.returned(count, outputs)
            return outputs

        return watched

    with during(patch(eval_frame._TorchDynamoContext, "__call__", call)):
        yield


def _read(descriptor: int) -> dict[int, dict[str, Any]]:
    try:
        whole = mmap.mmap(descriptor, 0, access=mmap.ACCESS_COPY)
    except ValueError:  # it is empty
        return {}
    place = 8 + int.from_bytes(whole[:8], "little")
    found: dict[int, dict[str, Any]] = {}
    for stored in msgspec.json.decode(whole[8:place], type=list[Stored]):
        value: Any = stored.value
        if stored.dtype:
            dtype = getattr(torch, stored.dtype)
            raw = bytearray(whole[place : place + stored.bytes])
            value = torch.frombuffer(raw, dtype=dtype) if raw else torch.empty(0, dtype=dtype)
            value = value.reshape(stored.shape)
            place += stored.bytes
        found.setdefault(stored.call, {})[stored.path] = value
    return found


def _bytes(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.reshape(-1).view(torch.uint8).numpy()) if tensor.numel() else b""


def _has_no_json(value: Any) -> bool:
    """Whether JSON cannot carry a number."""
    if isinstance(value, float):
        return not math.isfinite(value)
    return isinstance(value, int) and value.bit_length() > 63


def _equal(before: torch.Tensor, after: torch.Tensor) -> bool:
    try:
        return bool(torch.equal(before, after))
    except (RuntimeError, NotImplementedError, TypeError):
        return True


def _state(path: str, value: Any, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """The tensors and numbers that a value holds; of a module, its parameters, buffers and
    attributes."""
    if isinstance(value, torch.nn.Module):
        if id(value) in seen:
            return
        seen.add(id(value))
        own = getattr(value, "_orig_mod", None)
        if own is not None:
            yield from _state(path, own, seen)
            return
        for name, parameter in (*value.named_parameters(), *value.named_buffers()):
            yield from _plain(f"{path}.{name}", parameter)
        for prefix, module in value.named_modules():
            seen.add(id(module))
            for name, attribute in vars(module).items():
                if not name.startswith("_") and name != "training":
                    where = ".".join(filter(None, (path, prefix, name)))
                    yield from _plain(where, attribute)
    elif isinstance(value, torch.optim.Optimizer):
        yield from _plain(path, value.state_dict()["state"])
    elif not path.startswith("_"):
        yield from _plain(path, value)


def _plain(path: str, value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Tensors with their gradients, and numbers, in lists, tuples and dicts."""
    if isinstance(value, torch.Tensor | bool | int | float):
        yield path, value
        if isinstance(value, torch.Tensor) and value.is_leaf and value.grad is not None:
            yield f"{path}.grad", value.grad
    elif isinstance(value, list | tuple) and depth < 4:
        for number, item in enumerate(value):
            yield from _plain(f"{path}[{number}]", item, depth + 1)
    elif isinstance(value, dict) and depth < 4:
        for key, item in value.items():
            if isinstance(key, str | int):
                yield from _plain(f"{path}[{key!r}]", item, depth + 1)
