"""The pass for results that are part of a padded product: they stay in its rows.

`aligned_products` pads a product and cuts its result, so whoever returns it, or saves it for the
backward, would copy it into rows of its own length: 411 MB for GPT-2's logits, a tenth of its
inference. Where only views lie between, they are restrided instead, and the result has the values,
shape and order of eager's, in longer rows. Inductor returns it likewise: of an output that is a
view it keeps the order of the strides (`require_stride_order` in torch/_inductor/graph.py).

Gradients are left alone: autograd copies one whose strides are not its parameter's. So is an output
that AOTAutograd makes again from its base, with the strides that were traced.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from tcw.compiler.graphs.aten_facts import (
    outputs_of,
    shows_argument,
    views_are_regenerated,
    views_of,
)
from tcw.compiler.rewrites.subject import Subject, choose
from tcw.compiler.trace.byte_counts import bytes_text

aten = torch.ops.aten

KIND = "layout"
PADDED_ROWS = "padded-rows"
AS_CAPTURED = "as-captured"
MEANS = "the memory order of a result; the values are the same"

_PRODUCTS = (aten.mm.default, aten.addmm.default)


def padded_rows(subject: Subject) -> int:
    """Restride the graph's views in place; returns the number of outputs that keep padded rows."""
    if subject.kind == "backward":
        return 0
    promised = subject.promised
    parts = [_part_of_product(node) for node in outputs_of(subject.module)]
    fixed = parts[:promised] if views_are_regenerated() else []
    kept = 0
    for part in dict.fromkeys(parts):
        if part is None or part in fixed or parts[:promised].count(part) > 1:
            continue
        changed = _restrided(part)
        if changed and _wanted(subject, part):
            for node, value in changed.items():
                node.meta["val"] = value
            kept += 1
    return kept


def _part_of_product(node: Any) -> fx.Node | None:
    """The slice of a product that this node is a view of, if nothing but views lies between."""
    while isinstance(node, fx.Node) and shows_argument(node):
        above: Any = node.args[0]
        if node.target is aten.slice.Tensor and above.target in _PRODUCTS:
            return node
        node = above
    return None


def _restrided(part: fx.Node) -> dict[fx.Node, torch.Tensor]:
    """The views of this part of a product, itself included, that lie otherwise in the product's
    rows than they were traced. None do if one of them would have to be a copy."""
    product: Any = part.args[0]
    memory = product.meta["val"]
    if not all(isinstance(size, int) for size in memory.shape):
        return {}  # no padded product: comparing strides would fix its sizes
    found = {product: memory}
    with memory.fake_mode:
        for node in views_of(part):
            if any(isinstance(user.target, torch._ops.HigherOrderOperator) for user in node.users):
                return {}  # its subgraphs were traced for these strides
            args, kwargs = fx.node.map_aggregate(
                (node.args, node.kwargs),
                lambda one: found.get(one, one.meta["val"]) if isinstance(one, fx.Node) else one,
            )
            found[node] = view = node.target(*args, **kwargs)
            if view.untyped_storage()._cdata != memory.untyped_storage()._cdata:
                return {}
    return {n: value for n, value in found.items() if value.stride() != n.meta["val"].stride()}


def _wanted(subject: Subject, part: fx.Node) -> bool:
    product: Any = part.args[0]
    copied = part.meta["val"].nbytes
    width = product.meta["val"].shape[1]
    chosen = choose(
        subject,
        kind=KIND,
        nodes=(part.name,),
        default=PADDED_ROWS,
        choices=(PADDED_ROWS, AS_CAPTURED),
        rule="rows-of-a-padded-product",
        reason=f"rows of {width:,} elements are returned; a copy moves {bytes_text(copied)} twice",
        numbers={"copied_bytes": copied},
        means=MEANS,
    )
    return chosen == PADDED_ROWS
