"""The builder: what a lowering is given. It adds nodes to the value graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compiler.loops.expressions import Const, Expression, Load, convert
from compiler.loops.graph import Graph, Map, Reduce, ReduceOp
from compiler.loops.layouts import (
    Layout,
    Shape,
    View,
    compose_views,
    expand,
    permute,
    row_major,
    strides_over,
)
from compiler.loops.sizes import Size, multiply
from compiler.lowering.registry import NoLowering
from compiler.lowering.tensors import Meta, Tensor

Scalar = bool | int | float


class Builder:
    """Builds one value graph. `node`, `meta` and `metas` speak of the FX node being lowered."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.node = ""
        """Name of the FX node being lowered: the origin of what is added."""
        self.metas: tuple[Meta | None, ...] = ()
        """Its outputs; one for an operation that answers one tensor."""
        self._names: set[str] = set()

    @property
    def meta(self) -> Meta:
        """Its only (or first) tensor output."""
        for meta in self.metas:
            if meta is not None:
                return meta
        raise NoLowering("answers no tensor")

    def fresh(self, name: str) -> str:
        """`name`, or `name_1`, … where it is taken."""
        found, count = name, 0
        while found in self._names:
            count += 1
            found = f"{name}_{count}"
        self._names.add(found)
        return found

    def load(self, tensor: Tensor, shape: Shape, order: Sequence[int] | None = None) -> Load:
        """The tensor, broadcast to `shape`, for a domain with the dimensions in this order."""
        view = tensor.view
        if tensor.shape != shape:
            view = compose_views(view, (expand(tensor.shape, shape),))
        if order is not None and list(order) != sorted(order):
            view = compose_views(view, (permute(shape, order),))
        return Load(tensor.value, view, tensor.dtype)

    def pointwise(
        self,
        operands: Sequence[Tensor | Scalar],
        build: Callable[..., Expression],
        *,
        compute: str,
        meta: Meta | None = None,
        name: str = "",
    ) -> Tensor:
        """A map over the output: `build` gets each operand, broadcast, in dtype `compute`.

        `build` answers the element; it is converted to the output's dtype.
        """
        meta = meta or self.meta
        order = storage_order(meta.shape, meta.strides)
        loads = [
            convert(self.load(operand, meta.shape, order), compute)
            if isinstance(operand, Tensor)
            else Const(operand, compute)
            for operand in operands
        ]
        return self.map(convert(build(*loads), meta.dtype), meta, name)

    def map(self, expression: Expression, meta: Meta | None = None, name: str = "") -> Tensor:
        """A map whose expression is written for the output's storage order."""
        meta = meta or self.meta
        order = storage_order(meta.shape, meta.strides)
        domain = tuple(meta.shape[d] for d in order)
        node = Map(self.fresh(name or self.node), meta.dtype, domain, expression, (self.node,))
        self.graph.nodes.append(node)
        return Tensor(node.name, stored_view(meta.shape, order), meta.shape, meta.dtype)

    def reduce(
        self,
        op: ReduceOp,
        tensor: Tensor,
        dims: Sequence[int],
        *,
        keepdim: bool,
        compute: str,
        dtype: str,
        element: Callable[[Expression], Expression] = lambda loaded: loaded,
        name: str = "",
    ) -> Tensor:
        """A reduction of `element(tensor)` over some dimensions, accumulated in `compute`."""
        order = reading_order(tensor)
        domain = tuple(tensor.shape[d] for d in order)
        away = set(dims)
        reduced = tuple(d in away for d in order)
        loaded = convert(self.load(tensor, tensor.shape, order), compute)
        node = Reduce(
            self.fresh(name or self.node),
            dtype,
            op,
            domain,
            reduced,
            element(loaded),
            (self.node,),
        )
        self.graph.nodes.append(node)
        return self.kept(node.name, tensor.shape, order, away, keepdim, dtype)

    def kept(
        self,
        value: str,
        shape: Shape,
        order: Sequence[int],
        away: set[int],
        keepdim: bool,
        dtype: str,
    ) -> Tensor:
        """The tensor of a reduction's value: `shape` without (or with 1 for) what is `away`."""
        kept = [d for d in order if d not in away]
        left = tuple(shape[d] for d in sorted(kept))
        view = stored_view(left, [sorted(kept).index(d) for d in kept])
        whole = tuple(1 if d in away else size for d, size in enumerate(shape))
        return Tensor(value, view, whole if keepdim else left, dtype)

    def reshape(self, tensor: Tensor, shape: Shape) -> Tensor:
        """The same elements in row-major order, under another shape."""
        return Tensor(tensor.value, tensor.view, shape, tensor.dtype)

    def view(self, tensor: Tensor, layout: Layout, shape: Shape) -> Tensor:
        """Another view of the same value: `layout` leads from `shape` to the tensor's indices."""
        return Tensor(tensor.value, compose_views(tensor.view, (layout,)), shape, tensor.dtype)


def storage_order(shape: Shape, strides: tuple[Size, ...]) -> list[int]:
    """Dimensions from the widest stride to the narrowest, if the tensor is dense in that order.

    Else (broadcast, gaps, strides that cannot be compared) row-major order.
    """
    moving = [d for d, size in enumerate(shape) if size != 1]
    still = [d for d, size in enumerate(shape) if size == 1]
    left = set(moving)
    order: list[int] = []
    width: Size = 1
    while left:
        found = [d for d in left if strides[d] == width]
        if not found:
            return list(range(len(shape)))
        dim = max(found)
        order.append(dim)
        left.remove(dim)
        width = multiply(width, shape[dim])
    order.reverse()
    return order + still if order != sorted(order) else list(range(len(shape)))


def stored_view(shape: Shape, order: Sequence[int]) -> View:
    """Row-major index of `shape` -> flat index of a value whose digits are `shape` in `order`."""
    if list(order) == sorted(order):
        return ()
    strides = row_major(tuple(shape[d] for d in order)).strides
    placed: list[Size] = [0] * len(shape)
    for dim, stride in zip(order, strides, strict=True):
        placed[dim] = stride
    return (Layout(shape, tuple(placed)),)


def reading_order(tensor: Tensor) -> list[int]:
    """The dimensions of a tensor as they lie in its value's memory, widest stride first.

    Row-major order where the view is a chain, or a dimension has no single stride.
    """
    strides = logical_strides(tensor)
    if strides is None or any(not isinstance(s, int) for s in strides):
        return list(range(len(tensor.shape)))
    widths = [abs(s) if isinstance(s, int) else 0 for s in strides]
    if any(not width and tensor.shape[d] != 1 for d, width in enumerate(widths)):
        return list(range(len(widths)))
    return sorted(range(len(widths)), key=lambda d: (-widths[d], d))


def logical_strides(tensor: Tensor) -> tuple[Size, ...] | None:
    """The stride of each dimension in the value's flat space, or None where one has none."""
    if not tensor.view:
        return row_major(tensor.shape).strides
    if len(tensor.view) > 1:
        return None
    return strides_over(tensor.view[0], tensor.shape)
