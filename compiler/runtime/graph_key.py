"""The key of an ATen graph: its operations, tensors, and everything else its compile depends on.

Node names are included, since they become names in the code. The user's source lines are not: a
caller that needs up-to-date comments in the code adds them to `own`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily

import tcw.compiler
from tcw.compiler.codegen.cpp.isa import Isa, detect
from tcw.compiler.runtime.graph_cache import GraphKey, key_of
from tcw.compiler.runtime.store import digest
from tcw.compiler.runtime.toolchain import NoCompiler, find_compiler, unit_flags

SMALL = 256
"""Constants of up to this many elements are keyed by value, since the code may contain it."""


_BY_ORIGIN = (
    torch.ops.aten._to_copy.default,  # whether it must round
    torch.ops.aten.gather.default,  # the wording of its errors
    torch.ops.aten.index.Tensor,
)
"""Operations whose lowering depends on the operation that they were decomposed from."""


def graph_key(module: fx.GraphModule, settings: Mapping[str, str]) -> GraphKey:
    """The key of a functionalised graph.

    `settings` are named texts of everything else that matters: the kind of graph, decompositions,
    overrides.
    """
    operations: list[str] = []
    values: list[str] = []
    numbers: dict[fx.Node, int] = {}
    for node in module.graph.nodes:
        numbers[node] = len(numbers)
        arguments = f"{_text(node.args, numbers)} {_text(node.kwargs, numbers)}"
        operations.append(f"{node.op} {node.name} {_target(node)} {arguments}")
        values.append(f"{node.name} {_value(node.meta.get('val'))}")
    own = {
        "operations": "\n".join(operations),
        "tensors": "\n".join(values),
        "constants": "\n".join(_constants(module)),
    }
    return key_of(own, {**settings, **surroundings()})


@cache
def _machine(isa: Isa) -> dict[str, str]:
    return {
        "torch": str(torch.__version__),
        "tcw": source_digest(),
        "instruction set": isa.name,
        "flags": " ".join(unit_flags(isa)),
    }


def surroundings() -> dict[str, str]:
    """What every compile of this process depends on, by name."""
    found = find_compiler()
    version = found.reason if isinstance(found, NoCompiler) else found.version
    return {**_machine(detect()), "compiler": version}


@cache
def source_digest() -> str:
    """A digest of this compiler's own files: their names, sizes and modification times."""
    folder = Path(tcw.compiler.__file__).parent
    rows: list[str] = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            if name.endswith((".py", ".cpp")):
                path = Path(place, name)
                found = path.stat()
                rows.append(f"{path.relative_to(folder)} {found.st_size} {found.st_mtime_ns}")
    return digest("\n".join(rows).encode())[:16]


def _target(node: fx.Node) -> str:
    # The text of an operation is its name and overload; for other targets `str` is the best
    # available.
    if node.target in _BY_ORIGIN:
        return f"{node.target} of {node.meta.get('original_aten')}"
    return str(node.target)


def _text(item: Any, numbers: Mapping[fx.Node, int]) -> str:
    if isinstance(item, fx.Node):
        return f"%{numbers[item]}"
    if isinstance(item, (tuple, list)):
        return f"({','.join(_text(one, numbers) for one in item)})"
    if isinstance(item, Mapping):
        return f"{{{','.join(f'{key}:{_text(one, numbers)}' for key, one in item.items())}}}"
    if isinstance(item, slice):
        return f"slice({_text((item.start, item.stop, item.step), numbers)})"
    if item is None or isinstance(item, (bool, int, float, complex, str)):
        return repr(item)
    return f"{type(item).__name__}:{item}"


def _value(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided:
            return f"{value.layout} {value.dtype} {tuple(value.shape)}"
        shape = f"{_sizes(value.shape)} {_sizes(value.stride())} {_size(value.storage_offset())}"
        bits = f"{'conj ' if value.is_conj() else ''}{'neg ' if value.is_neg() else ''}"
        return f"{value.dtype} {value.device} {shape} {bits}{type(value).__name__}"
    if isinstance(value, (tuple, list)):
        return f"({';'.join(_value(one) for one in value)})"
    return str(value)


def _sizes(sizes: Any) -> str:
    return ",".join([_size(size) for size in sizes])


def _size(size: Any) -> str:
    return str(size) if isinstance(size, int) else str(size.node.expr)


def _constants(module: fx.GraphModule) -> list[str]:
    rows: list[str] = []
    for node in module.graph.nodes:
        if node.op != "get_attr":
            continue
        found: Any = module
        for name in node.target.split("."):
            found = getattr(found, name, None)
        if isinstance(found, torch.Tensor):
            rows.append(f"{node.target} {_value(found)} {_content(found)}")
        elif isinstance(found, fx.GraphModule):
            rows += [
                f"{node.target} {name} {part.code}"
                for name, part in found.named_modules()
                if isinstance(part, fx.GraphModule)
            ]
        else:
            rows.append(f"{node.target} {type(found).__name__}")
    return rows


def _content(tensor: Any) -> str:
    known = type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.device.type == "cpu"
    if not known or tensor.layout is not torch.strided or tensor.numel() > SMALL:
        return ""
    with unset_fake_temporarily():  # AOTAutograd traces around us
        plain = tensor.detach().resolve_conj().resolve_neg().reshape(-1).contiguous()
        return digest(bytes(plain.view(torch.uint8).tolist()))[:32]
