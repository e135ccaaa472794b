"""The alignment pass: products on a GPU whose rows do not begin at multiples of 16 bytes.

Tensor cores load 16 bytes at a time. For a 16-bit product with a row of another length (BERT's
vocabulary of 30,522) cuBLAS takes kernels that need about three times as long. The product is
computed with these sizes padded with zeros, and what was added to its result is left out by whoever
reads it. That copies what is padded once. The idea is Inductor's (torch/_inductor/fx_passes/
pad_mm.py), which measures each; here the copies are weighed against the arithmetic.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import fx

from tcw.compiler.graphs.aten_facts import views_of
from tcw.compiler.rewrites.subject import Subject, add_call, choose
from tcw.compiler.trace.byte_counts import bytes_text

aten = torch.ops.aten

KIND = "library"
PADDED = "padded"
AS_IS = "as-captured"
MEANS = "a library call either way, with rows of whole 16 bytes or without"

ALIGNED = 8
"""Elements of 16 bits in 16 bytes."""
SMALLEST = 256
"""Products with a shorter side are limited by memory or by their launch."""
SLOWER = 3.0
"""Time of an unaligned product relative to an aligned one: BERT's last layer on an H200."""
FLOPS_PER_BYTE = 200
"""What tensor cores compute while memory delivers a byte: H100, H200, A100 (within a third)."""

_NARROW = (torch.float16, torch.bfloat16)


def aligned_products(subject: Subject) -> int:
    """Rewrite the graph in place and return the number of products that were padded."""
    moved = 0
    module = subject.module
    pads = _Pads(module.graph)
    for node in list(module.graph.nodes):
        factors = _factors(node)
        if factors is None or not _wanted(subject, node, factors):
            continue
        _rewrite(module, node, factors, pads)
        moved += 1
    if moved:
        pads.instead()
    return moved


def _factors(node: fx.Node) -> tuple[fx.Node, fx.Node] | None:
    """The factors of a large 16-bit product on a GPU with an unaligned row."""
    if node.target is aten.mm.default:
        left, right = node.args
    elif node.target is aten.addmm.default:
        _, left, right = node.args
    else:
        return None
    one, other = _value(left), _value(right)
    if one is None or other is None:
        return None
    (rows, inner), columns = one.shape, other.shape[1]
    if min(rows, inner, columns) < SMALLEST:
        return None
    lengths = [_row(one), _row(other), columns]
    return (left, right) if any(length % ALIGNED for length in lengths) else None


def _value(node: Any) -> torch.Tensor | None:
    """A node's result if it is a 16-bit matrix of known sizes on a GPU."""
    value = node.meta.get("val") if isinstance(node, fx.Node) else None
    if not isinstance(value, torch.Tensor) or value.device.type != "cuda":
        return None
    known = all(isinstance(size, int) for size in value.shape)
    return value if known and value.dtype in _NARROW else None


def _row(value: torch.Tensor) -> int:
    """The length of a row in memory, whichever way round the matrix lies."""
    rows, columns = value.shape
    return int(rows if value.stride(0) == 1 and value.stride(1) != 1 else columns)


def _padding(factors: tuple[fx.Node, fx.Node]) -> tuple[int, int, int]:
    """How many rows of the left, inner elements and columns of the right are added."""
    left, right = (factor.meta["val"] for factor in factors)
    (rows, inner), columns = left.shape, right.shape[1]
    turned = left.stride(0) == 1 and left.stride(1) != 1
    return -rows % ALIGNED if turned else 0, -inner % ALIGNED, -columns % ALIGNED


def _copied(factors: tuple[fx.Node, fx.Node]) -> int:
    """Bytes of the factors and of the result that are copied to be padded or cut."""
    left, right = (factor.meta["val"] for factor in factors)
    rows, inner, columns = _padding(factors)
    result = left.shape[0] * right.shape[1] * left.itemsize
    return int(
        left.nbytes * bool(rows or inner)
        + right.nbytes * bool(inner or columns)
        + result * bool(rows or columns)
    )


def _wanted(subject: Subject, node: fx.Node, factors: tuple[fx.Node, fx.Node]) -> bool:
    left, right = (factor.meta["val"] for factor in factors)
    (rows, inner), columns = left.shape, right.shape[1]
    flops = 2 * rows * inner * columns
    copied = _copied(factors)
    saved = (SLOWER - 1) * flops / FLOPS_PER_BYTE
    pays = saved > 2 * copied  # each copied byte is read and written
    chosen = choose(
        subject,
        kind=KIND,
        nodes=(node.name,),
        default=PADDED if pays else AS_IS,
        choices=(PADDED, AS_IS),
        rule="unaligned-rows" if pays else "copies-cost-more",
        reason=(
            f"{rows} x {inner} times {inner} x {columns}: rows of other than whole 16 bytes; "
            f"padding copies {bytes_text(copied)} for {flops:,} operations"
        ),
        numbers={"flops": flops, "copied_bytes": copied},
        means=MEANS,
    )
    return chosen == PADDED


class _Pads:
    """Padded matrices, each made once: a backward multiplies the gradient of the logits twice, once
    as it lies and once transposed."""

    def __init__(self, graph: fx.Graph) -> None:
        self.graph = graph
        self._made: dict[tuple[fx.Node, int, int], fx.Node] = {}

    def padded(self, like: fx.Node, node: fx.Node, down: int, right: int) -> fx.Node:
        """A matrix with zeros added below and to the right."""
        if not (down or right):
            return node
        value = node.meta["val"]
        if value.stride(0) != 1 or value.stride(1) == 1:
            return self._wide(like, node, down, right)
        # it stays the transpose of its memory
        memory: Any = (
            node.args[0] if _turns(node) else add_call(like, aten.permute.default, node, [1, 0])
        )
        wide = self._wide(like, memory, right, down)
        return add_call(like, aten.permute.default, wide, [1, 0])

    def _wide(self, like: fx.Node, node: fx.Node, down: int, right: int) -> fx.Node:
        key = node, down, right
        if key not in self._made:
            made = add_call(like, aten.constant_pad_nd.default, node, [0, right, 0, down])
            self._made[key] = made
        return self._made[key]

    def instead(self) -> None:
        """Let sums over a padded matrix read it, too: then what was padded need not exist."""
        for (one, down, _), wide in self._made.items():
            for user in [user for user in one.users if not user.users and user.op != "output"]:
                self.graph.erase_node(user)  # the transpose that a product read
            users = [user for user in one.users if user is not wide]
            known = one.op == "call_function" and one.meta["val"].is_contiguous() and not down
            if not (known and users and all(u.target is aten.sum.dim_IntList for u in users)):
                continue
            one.append(wide)  # before all of them
            with self.graph.inserting_after(wide):
                width = one.meta["val"].shape[1]
                part = add_call(one, aten.slice.Tensor, wide, 1, 0, width)
            for user in users:
                user.replace_input_with(one, part)


def _turns(node: fx.Node) -> bool:
    """Whether it is a transpose of a matrix."""
    if node.target is aten.permute.default:
        dims: Any = node.args[1]
        return [dim % 2 for dim in dims] == [1, 0]
    return node.target is aten.t.default


def _rewrite(
    module: fx.GraphModule, node: fx.Node, factors: tuple[fx.Node, fx.Node], pads: _Pads
) -> None:
    left, right = factors
    rows, inner, columns = _padding(factors)
    height, width = node.meta["val"].shape

    step, padded = partial(add_call, node), partial(pads.padded, node)
    bias = node.args[0] if node.target is aten.addmm.default else None
    in_epilogue = bias is not None and bias.meta["val"].shape == (width,)
    with module.graph.inserting_before(node):
        pair = padded(left, rows, inner), padded(right, inner, columns)
        if in_epilogue:
            wide = step(aten.constant_pad_nd.default, bias, [0, columns]) if columns else bias
            product = step(aten.addmm.default, wide, *pair)
            product.kwargs = node.kwargs
        else:
            product = step(aten.mm.default, *pair)
        if rows:
            product = step(aten.slice.Tensor, product, 0, 0, height)
        if columns:
            product = step(aten.slice.Tensor, product, 1, 0, width)
        if bias is not None and not in_epilogue:
            product = _plus(step, node, product)
    node.replace_all_uses_with(product)
    product.meta = dict(node.meta)  # the strides that its readers were promised
    for view in views_of(product):  # of rows that do not lie one after another it may be a copy
        if view.target in (aten.view.default, aten._unsafe_view.default):
            view.target = aten.reshape.default
    module.graph.erase_node(node)


def _plus(step: Any, node: fx.Node, product: fx.Node) -> fx.Node:
    """beta * bias + alpha * product, in float32 as in cuBLAS's epilogue."""
    dtype = node.meta["val"].dtype
    wide = step(aten.to.dtype, product, torch.float32)
    bias = step(aten.to.dtype, node.args[0], torch.float32)
    alpha, beta = node.kwargs.get("alpha", 1), node.kwargs.get("beta", 1)
    if alpha != 1:
        wide = step(aten.mul.Tensor, wide, alpha)
    if beta != 1:
        bias = step(aten.mul.Tensor, bias, beta)
    return step(aten.to.dtype, step(aten.add.Tensor, wide, bias), dtype)
