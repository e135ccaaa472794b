"""FX nodes and graphs as records. Formats nothing through torch, so it is cheap for every graph."""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Callable, Iterable, Mapping

import torch
from torch import fx

from tcw.compiler.control.recorder import Recorder
from tcw.compiler.graphs.lines import parse_stack_trace
from tcw.compiler.graphs.tensors import tensor_meta
from tcw.compiler.trace.records import Graph, Location, Node, TensorMeta
from tcw.compiler.trace.records.graph import GraphKind

COMPUTING = ("call_function", "call_method", "call_module")
"""The node operations that torch counts as ops (`count_calls` in torch/_dynamo/utils.py)."""

_MAX_ARGS = 400
_MAX_ITEMS = 16
_targets: dict[object, str] = {}

Origins = Callable[[fx.Node], tuple[str, ...]]


def target_name(target: object) -> str:
    """`aten.addmm.default`, `torch.softmax`, `operator.mul`, or the string of a string target."""
    if isinstance(target, str):
        return target
    try:
        known = _targets.get(target)
    except TypeError:
        return _target_name(target)
    if known is None:
        known = _target_name(target)
        _targets[target] = known
    return known


def _target_name(target: object) -> str:
    if isinstance(target, torch._ops.OpOverload):
        return f"{target}"
    name: str = getattr(target, "__name__", "") or type(target).__name__
    module: str = getattr(target, "__module__", "") or ""
    if module in ("_operator", "operator"):
        return f"operator.{name}"
    if module == "builtins":
        return name
    if not module:
        # built-in functions of torch and of its _C modules have no module
        owner = getattr(target, "__self__", None)
        module = "torch" if owner is None or "torch" in str(owner) else type(owner).__name__
    if module.startswith("torch._C."):
        module = module.replace("torch._C._nn", "torch.nn.functional").replace(
            "torch._C.", "torch."
        )
    return f"{module}.{name}"


def format_argument(value: object) -> str:
    """One argument as written in a call: nodes by name, long lists truncated."""
    if isinstance(value, fx.Node):
        return str(value.name)
    if isinstance(value, (str, int, float, bool, type(None))):
        return repr(value) if len(str(value)) <= 80 else repr(str(value)[:80]) + "…"
    if isinstance(value, (list, tuple)):
        items = [format_argument(item) for item in value[:_MAX_ITEMS]]
        if len(value) > _MAX_ITEMS:
            items.append(f"… {len(value) - _MAX_ITEMS} more")
        body = ", ".join(items)
        if isinstance(value, list):
            return f"[{body}]"
        return f"({body},)" if len(value) == 1 else f"({body})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k}: {format_argument(v)}" for k, v in value.items()) + "}"
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        return ":".join("" if part is None else format_argument(part) for part in parts)
    if callable(value):
        return target_name(value)
    try:
        return str(value)[:80]
    except Exception:
        return f"<{type(value).__name__}>"


def arguments_text(args: Iterable[object], kwargs: Mapping[str, object]) -> str:
    """`x, 8, dim=-1`."""
    parts = [format_argument(value) for value in args]
    parts += [f"{name}={format_argument(value)}" for name, value in kwargs.items()]
    return ", ".join(parts)


def format_arguments(node: fx.Node) -> str:
    """`x, 8, dim=-1`, truncated to 400 characters."""
    text = arguments_text(node.args, node.kwargs)
    return text if len(text) <= _MAX_ARGS else text[: _MAX_ARGS - 1] + "…"


def node_value(node: fx.Node) -> object:
    """torch's metadata for a node's value: `val` after AOTAutograd, `example_value` before."""
    meta = node.meta
    return meta["val"] if "val" in meta else meta.get("example_value")


def node_metas(node: fx.Node) -> tuple[TensorMeta | None, tuple[TensorMeta | None, ...]]:
    """(the node's value, or None; the values of a multi-output node)."""
    value = node_value(node)
    if isinstance(value, (list, tuple)):
        return None, tuple(tensor_meta(item) for item in value)
    return tensor_meta(value), ()


def module_path(node: fx.Node) -> str:
    """Path of the innermost module that the node ran in: `layers.0.attention`; "" at the top."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    if not stack:
        return ""
    entry = next(reversed(stack.values()))
    return readable_path(str(entry[0] if isinstance(entry, tuple) else entry))


_SUBSCRIPTS = (
    (re.compile(r"\._modules\['([^']+)'\]"), r".\1"),
    (re.compile(r"\['([^']+)'\]"), r".\1"),
    (re.compile(r"\[(\d+)\]"), r".\1"),
)


def readable_path(path: str) -> str:
    """`L['self']._modules['layers'][0].norm` -> `layers.0.norm`, and so from `L['args'][0]`: a
    wrapper's `*args` start with `self`."""
    path = re.sub(r"^L\['args'\]\[0\]", "self", path)
    path = re.sub(r"^[LG]\['(\w+)'\]", r"\1", path)
    for pattern, replacement in _SUBSCRIPTS:
        path = pattern.sub(replacement, path)
    first, _, rest = path.partition(".")
    return rest if first in ("self", "s", "model", "mod", "module", "fn") else path


def node_stack(node: fx.Node) -> tuple[Location, ...]:
    """The node's stack outside torch, outermost first."""
    trace = node.meta.get("stack_trace")
    return parse_stack_trace(trace) if isinstance(trace, str) else ()


def user_line(node: fx.Node | None) -> Location | None:
    """The user's line of a node; None if it has none."""
    stack = node_stack(node) if node is not None else ()
    return stack[-1] if stack else None


def source_comment(node: fx.Node) -> str:
    """The user's line of a node for a comment, `model.py:12  x = f(x)`; "" if it has none."""
    line = user_line(node)
    if line is None:
        return ""
    source = linecache.getline(line.file, line.line).strip()
    return f"{os.path.basename(line.file)}:{line.line}  {source}"


def describe_node(node: fx.Node, origins: tuple[str, ...]) -> Node:
    """One FX node as a record part. Reads metadata only; installs no guard."""
    stack = node_stack(node)
    value, values = node_metas(node)
    return Node(
        name=node.name,
        op=node.op,
        target=target_name(node.target),
        args=format_arguments(node),
        inputs=tuple(source.name for source in node.all_input_nodes),
        value=value,
        values=values,
        module=module_path(node),
        location=stack[-1] if stack else None,
        stack=stack if len(stack) > 1 else (),
        origins=origins,
    )


def describe_graph(
    graph: fx.Graph,
    *,
    id: str,
    kind: GraphKind,
    compile_id: str,
    recorder: Recorder,
    parent: str = "",
    origins: Origins | None = None,
) -> Graph:
    """A whole FX graph as a record. Stores the source files that its nodes point into."""
    nodes = tuple(
        describe_node(node, origins(node) if origins is not None else ()) for node in graph.nodes
    )
    store_sources(recorder, nodes)
    return Graph(
        id=id,
        kind=kind,
        compile_id=compile_id,
        nodes=nodes,
        parent=parent,
        ops=sum(node.op in COMPUTING for node in nodes),
        call=recorder.call,
    )


def store_sources(recorder: Recorder, nodes: Iterable[Node]) -> None:
    """Store the source of every file that these nodes point into."""
    for node in nodes:
        if node.location is not None:
            recorder.source(node.location.file)
        for location in node.stack:
            recorder.source(location.file)
