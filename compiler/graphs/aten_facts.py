"""What the stages need to know about an ATen graph besides its nodes."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch import fx

from tcw.compiler.graphs.nodes import source_comment
from tcw.compiler.trace.records.graph import GraphKind

_VIEWS_IF_POSSIBLE = (torch.ops.aten.reshape.default, torch.ops.aten._unsafe_view.default)


def outputs_of_the_user(module: fx.GraphModule, kind: GraphKind) -> int:
    """The number of leading outputs of the graph that are not saved for the backward."""
    count = len(outputs_of(module))
    found = getattr(_metadata(), "num_forward", None) if kind == "forward" else None
    return found if isinstance(found, int) else count


def outputs_of(module: fx.GraphModule) -> Any:
    """What the graph returns: nodes, and what is no tensor."""
    return module.graph.output_node().args[0]


def donated(module: fx.GraphModule, kind: GraphKind) -> tuple[str, ...]:
    """Inputs of a backward that nothing else holds once it runs: AOTAutograd refuses to run such a
    backward twice (`donated_buffer` in torch/_functorch/config.py)."""
    places = getattr(_metadata(), "bw_donated_idxs", None) if kind == "backward" else None
    if not places:
        return ()
    inputs = [node.name for node in module.graph.nodes if node.op == "placeholder"]
    return tuple(inputs[place] for place in places if place < len(inputs))


def static_inputs(kind: GraphKind) -> tuple[int, ...]:
    """Places of the parameters and buffers among the inputs of a forward or inference graph."""
    places = getattr(_metadata(), "static_input_indices", None) if kind != "backward" else None
    return tuple(places or ())


def freed_inputs(module: fx.GraphModule, kind: GraphKind) -> tuple[str, ...]:
    """Inputs of a backward that are freed when it releases them, unless the caller holds them.

    These are the donated inputs and the incoming gradients (`_is_tangent` in
    torch/_functorch/partitioners.py). A gradient may be shared, so it is never overwritten.
    """
    if kind != "backward":
        return ()
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    tangents = tuple(node.name for node in inputs if "tangents" in str(node.target))
    return (*donated(module, kind), *tangents)


def constants(module: fx.GraphModule) -> dict[str, Any]:
    """The graph's own tensors, by the names of their nodes."""
    return {
        node.name: operator.attrgetter(str(node.target))(module)
        for node in module.graph.nodes
        if node.op == "get_attr"
    }


def views_are_regenerated() -> bool:
    """Whether AOTAutograd regenerates an output as a view of an intermediate, by the strides with
    which it was traced (`gen_alias_from_base` in torch/_functorch/_aot_autograd)."""
    outputs = getattr(_metadata(), "output_info", None) or ()
    return any(output.output_type.name.startswith("alias_of_intermediate") for output in outputs)


def aliases(operation: Any) -> bool:
    """Whether an operation writes an argument or returns its memory, or might: it has no schema."""
    schema = getattr(operation, "_schema", None)
    return schema is None or any(
        argument.alias_info for argument in (*schema.arguments, *schema.returns)
    )


def is_view(node: fx.Node) -> bool:
    """Whether a result is in the memory of an argument."""
    schema = getattr(node.target, "_schema", None)
    return schema is not None and any(one.alias_info is not None for one in schema.returns)


def views_of(node: fx.Node) -> Iterator[fx.Node]:
    """A node and all views of it, in the order of the graph. `reshape` and `_unsafe_view`, which
    are views if the strides allow it, count."""
    found = {node}
    while node.op != "root":
        if node in found:
            yield node
        node = node.next
        if shows_argument(node) and node.args[0] in found:
            found.add(node)


def shows_argument(node: fx.Node) -> bool:
    """Whether a result is its first argument's memory, if the strides allow it."""
    return is_view(node) or node.target in _VIEWS_IF_POSSIBLE


def comments(module: fx.GraphModule) -> dict[str, str]:
    """Name of a node -> the user's line for comments above loops: `model.py:12  x = f(x)`."""
    generator = ((node.name, source_comment(node)) for node in module.graph.nodes)
    return {name: words for name, words in generator if words}


def _metadata() -> Any:
    context = torch._guards.TracingContext.try_get()
    return context.fw_metadata if context is not None else None
