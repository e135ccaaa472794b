"""A file that calls the user's model with the inputs of one call, compiled and in eager.

For what no operations cut out of a graph can show, such as a graph that was captured wrongly.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import torch

from tcw.compiler.measure.calls.inputs import InputSet
from tcw.compiler.measure.precision.arithmetic import NotComparable
from tcw.compiler.measure.precision.repro_inputs import (
    DRAWN,
    STORED,
    STORED_BYTES,
    Drawing,
    InputText,
    number,
    stored,
)
from tcw.compiler.trace.records import Settings

_TEXT = '''"""{title}

{words}
Run it with `python {name}`: it compiles the model with backend="{backend}", compares its results
with eager's, and exits with status 1 if one is off by more than {bound:.2g} of its largest value.
"""

import base64
import copy
import importlib.util
import os
import sys
import zlib

import torch

FILE = {file!r}
MODEL = {model!r}
{makers}

def model():
    sys.path.insert(0, os.path.dirname(FILE))
    spec = importlib.util.spec_from_file_location("model_file", FILE)
    module = sys.modules["model_file"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return eval(MODEL, vars(module))


def inputs():
    return {positional}, {keyword}


def results(call, module):
    torch.manual_seed(0)
    positional, keyword = inputs()
    with {context}:
        outputs = call(*positional, **keyword)
        given = torch.utils._pytree.tree_leaves(outputs)
        tensors = [value for value in given if isinstance(value, torch.Tensor)]
        found = {{f"output {{at}}": value for at, value in enumerate(tensors)}}
        if {train}:
            means = [value.float().mean() for value in tensors if value.requires_grad]
            sum(means).backward()
    if isinstance(module, torch.nn.Module):
        found |= {{f"grad {{name}}": value.grad for name, value in module.named_parameters()}}
        found |= {{f"buffer {{name}}": value for name, value in module.named_buffers()}}
    left = torch.utils._pytree.tree_leaves((positional, keyword))
    found |= {{f"input {{at}}": value for at, value in enumerate(left)}}
    found |= {{f"grad input {{at}}": getattr(value, "grad", None) for at, value in enumerate(left)}}
    return {{name: value for name, value in found.items() if isinstance(value, torch.Tensor)}}


def main():
    eager = model()
    compiled = copy.deepcopy(eager)
    ours = results(torch.compile(compiled, backend="{backend}"), compiled)
    theirs = results(eager, eager)
    wrong = set(ours) != set(theirs)
    print(f"{{'result':32}} {{'compiled against eager':>24}}")
    for name in sorted(set(ours) & set(theirs)):
        one, other = ours[name].detach(), theirs[name].detach()
        error = float("inf")
        if one.shape == other.shape and one.numel():
            one, other = (value.to(torch.complex128) for value in (one, other))
            scale = other.abs().nan_to_num().max().item() or 1.0
            same = (one == other) | (one.isnan() & other.isnan())
            error = torch.where(same, 0.0, (one - other).abs().nan_to_num(float("inf"))).max()
            error = error.item() / scale
        elif one.shape == other.shape:
            error = 0.0
        bad = error > {bound!r}
        wrong |= bad
        print(f"{{name:32}} {{error:24.2e}} {{'WRONG' if bad else ''}}")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
'''


def model_file(
    settings: Settings, inputs: InputSet, backend: str, share: float, title: str, words: str
) -> str:
    """The text. `share`: the error of the worst result, relative to its largest value.

    Raises `NotComparable` if an input cannot be written down.
    """
    tensors = _tensors((inputs.positional, inputs.keyword))
    small = sum(tensor.untyped_storage().nbytes() for tensor in tensors) <= STORED_BYTES
    drawing = Drawing()
    written: Callable[[torch.Tensor], InputText] = stored if small else drawing.of

    def text(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            made = written(value.detach()).expression
            return f"{made}.requires_grad_()" if value.requires_grad else made
        if type(value) is dict:
            return "{" + ", ".join(f"{text(k)}: {text(v)}" for k, v in value.items()) + "}"
        if type(value) in (list, tuple):
            body = ", ".join(map(text, value))
            if type(value) is list:
                return f"[{body}]"
            return f"({body},)" if value else "()"
        if type(value) is float:
            return number(value)
        if value is None or type(value) in (bool, int, str, complex):
            return repr(value)
        raise NotComparable(f"an input {type(value).__name__} cannot be written into a file")

    context = {"no-grad": "torch.no_grad()", "inference": "torch.inference_mode()"}
    positional, keyword = text(tuple(inputs.positional)), text(dict(inputs.keyword))
    return _TEXT.format(
        title=title,
        words=words,
        name="repro_graph.py",
        backend=backend,
        bound=share / 2,
        file=os.path.abspath(settings.file),
        model=settings.model or "model",
        makers=(STORED if small else DRAWN),
        positional=positional,
        keyword=keyword,
        context=context.get(settings.grad, "torch.enable_grad()"),
        train=settings.grad == "train",
    )


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    if not isinstance(value, (list, tuple)):
        return []
    return [tensor for item in value for tensor in _tensors(item)]
