"""Short labels for nodes, groups and kernels: the operations that a set of FX nodes computes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_VIEWS = frozenset({
    "view", "_unsafe_view", "reshape", "permute", "transpose", "t", "expand", "expand_as",
    "unsqueeze", "squeeze", "alias", "detach", "slice", "select", "split", "split_with_sizes",
    "chunk", "unbind", "as_strided", "contiguous", "clone", "getitem", "_reshape_alias", "_to_copy",
    "to_copy", "unsafe_view", "reshape_alias", "convert_element_type", "full", "empty",
    "lift_fresh_copy", "inductor_force_stride_order",
})  # fmt: skip
"""Ops that only move or convert data. A label names them only if it has nothing else to name."""

_LABEL_WORDS = 4


def op_name(target: Any) -> str:
    """`aten.exp.default` -> `exp`; a target without an overload packet gives its own name."""
    packet = getattr(target, "overloadpacket", None) or target
    name = getattr(packet, "__name__", None) or getattr(packet, "_name", None) or str(packet)
    return str(name).rpartition(".")[2]


def label(names: Iterable[str]) -> str:
    """Op names as a label: distinct, in order, without data movement unless that is all there
    is."""
    distinct = list(dict.fromkeys(names))
    chosen = [name for name in distinct if name not in _VIEWS] or distinct
    if len(chosen) > _LABEL_WORDS + 1:
        return ", ".join(chosen[:_LABEL_WORDS]) + f" + {len(chosen) - _LABEL_WORDS} more"
    return ", ".join(chosen)


def copy_label(text: str) -> str:
    """The label of an operation that only moves data, from the label of its consumer."""
    purposes = [name for name in text.split(", ") if name and name not in _VIEWS]
    return f"copy for {', '.join(purposes)}" if purposes else "copy"


def node_label(nodes: Iterable[Any]) -> str:
    """The label of lowered FX nodes by their own ops: `amax`, `exp, sum`."""
    return label(op_name(node.target) for node in nodes if node.op == "call_function")


def user_label(nodes: Iterable[Any], originals: Mapping[str, object]) -> str:
    """The label of lowered FX nodes by the user's ops that they come from (torch's
    `original_aten`): `softmax, layer_norm`. `originals` gives the original op of nodes that passes
    added, by name."""
    names = []
    for node in nodes:
        if node.op != "call_function":
            continue
        original = originals.get(node.name) or node.meta.get("original_aten")
        name = op_name(original if original is not None else node.target)
        names.append(name.removeprefix("_").removeprefix("native_") or name)
    return label(names)
