"""The builder: what lowerings use to add nodes to the value graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from tcw.compiler.loops.expressions import Const, Expression, IndexTerm, Load, Op, convert
from tcw.compiler.loops.graph import (
    Buffer,
    Graph,
    Input,
    Map,
    Operand,
    Store,
    StoreMode,
)
from tcw.compiler.loops.layouts import (
    Layout,
    Shape,
    View,
    compose_views,
    dense_order,
    expand,
    permute,
    row_major,
    same_strides,
    span,
    view_strides,
)
from tcw.compiler.loops.sizes import Size
from tcw.compiler.lowering.registry import NoLowering
from tcw.compiler.lowering.tensors import Meta, Tensor

Scalar = bool | int | float


class Builder:
    """Builds one value graph. `node`, `meta` and `metas` describe the FX node being lowered."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.node = ""
        """Name of the FX node being lowered: the origin of the nodes that are added."""
        self.taken_from: Any = None
        """The operation that was decomposed into the FX node."""
        self.metas: tuple[Meta | None, ...] = ()
        """The node's outputs; a single entry if the operation returns one tensor."""
        self.on_cpu = True
        """Whether loops run on a CPU."""
        self.read_in_place: Callable[[], bool] = lambda: False
        """Whether all readers of the node, or of views of it, are operations on elements, which
        can share a loop with it."""
        self.only_returned: Callable[[], bool] = lambda: False
        """Whether only the caller gets the node, or views of it."""
        self.unread: frozenset[int] = frozenset()
        """Positions of the outputs without users."""
        self.about_to_write: Callable[[str], None] = lambda value: None
        """Called with a value before a store or a call writes memory that others may view."""
        self.offsets: dict[str, Size | None] = {}
        """Inputs and results with a storage offset: the offset in elements, or None if unknown."""
        self.written: set[str] = set()
        """Values whose memory the graph writes. A copy of one is never the value itself."""
        self.in_place = ""
        """The input that the operation may overwrite instead of copying it, if any."""
        self.unset: set[str] = set()
        """Constants in the place of memory that ATen leaves uninitialised."""
        self._constants: dict[str, Scalar] = {}
        self._storable: set[str] = set()
        """The inputs and buffers among the first `_seen` nodes."""
        self._seen = 0
        self.reserved: frozenset[str] = frozenset()
        """Names of FX nodes. Only a value made for a node may take its name."""
        self._names: set[str] = set()

    @property
    def meta(self) -> Meta:
        """The only (or first) tensor output."""
        for meta in self.metas:
            if meta is not None:
                return meta
        raise NoLowering("returns no tensor")

    def is_storable(self, value: str) -> bool:
        """Whether stores may write the value, i.e. it is an input or a buffer."""
        for node in self.graph.nodes[self._seen :]:
            if isinstance(node, (Input, Buffer)):
                self._storable.add(node.name)
        self._seen = len(self.graph.nodes)
        return value in self._storable

    def constant_of(self, tensor: Tensor) -> Scalar | None:
        """The number that fills the tensor, if it was created as a constant."""
        return self._constants.get(tensor.value)

    def fresh(self, name: str) -> str:
        """`name`, or `name_1`, … if it is taken."""
        found, count = name, 0
        while found in self._names or (found in self.reserved and found != self.node):
            count += 1
            found = f"{name}_{count}"
        self._names.add(found)
        return found

    def load(self, tensor: Tensor, shape: Shape, order: Sequence[int] | None = None) -> Load:
        """Load the tensor, broadcast to `shape`, for a domain with its dimensions in this order."""
        view = tensor.view
        if 0 in shape:
            return Load(tensor.value, (), tensor.dtype)
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
        """A map over the output: `build` receives each operand, broadcast, in dtype `compute`.

        The element that `build` returns is converted to the output's dtype.
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
        """A map from an expression written for the output's storage order."""
        meta = meta or self.meta
        order = storage_order(meta.shape, meta.strides)
        domain = tuple([meta.shape[d] for d in order])
        if 0 in domain:
            return self.buffer(meta, name)
        node = Map(self.fresh(name or self.node), meta.dtype, domain, expression, (self.node,))
        self.graph.nodes.append(node)
        if isinstance(expression, Op) and expression.name == "convert":
            (expression,) = expression.args
        if isinstance(expression, Const):
            self._constants[node.name] = expression.number
        elif isinstance(node.expression, Load) and node.expression.value in self._constants:
            self._constants[node.name] = self._constants[node.expression.value]
        return Tensor(node.name, stored_view(meta.shape, order), meta.shape, meta.dtype)

    def buffer(self, meta: Meta | None = None, name: str = "") -> Tensor:
        """Memory for the output, to be filled by `store`s; sufficient by itself if it is empty."""
        meta = meta or self.meta
        order = storage_order(meta.shape, meta.strides)
        domain = tuple(meta.shape[d] for d in order)
        node = Buffer(self.fresh(name or self.node), meta.dtype, domain)
        self.graph.nodes.append(node)
        return Tensor(node.name, stored_view(meta.shape, order), meta.shape, meta.dtype)

    def copied_to_write(self, tensor: Tensor) -> Tensor:
        """Memory with the tensor's content, which the operation will partly overwrite.

        This is the argument itself if the result replaces it in the graph and nothing reads the old
        content afterwards (`in_place`).
        """
        if tensor.value == self.in_place:
            self.about_to_write(tensor.value)
            return tensor
        whole = self.buffer(replace(self.meta, dtype=tensor.dtype))
        self.store(whole, tensor, order=storage_order(self.meta.shape, self.meta.strides))
        return whole

    def store(
        self,
        target: Tensor,
        source: Tensor | Expression,
        *,
        view: View | None = None,
        shape: Shape | None = None,
        terms: Sequence[IndexTerm] = (),
        mode: StoreMode = "set",
        order: Sequence[int] | None = None,
    ) -> None:
        """Write the source into the memory that `target` views.

        A tensor is broadcast to `shape` (default: the target's) and converted to the target's
        dtype. An expression is written for that domain with its dimensions in `order` (default:
        row-major). `view` maps row-major `shape` to the target's value.
        """
        shape = target.shape if shape is None else shape
        view = target.view if view is None else view
        if 0 in shape:
            return
        order = range(len(shape)) if order is None else order
        if isinstance(source, Tensor):
            source = self.load(source, shape, order)
        if list(order) != sorted(order):
            view = compose_views(view, (permute(shape, order),))
        node = Store(
            self.fresh(f"{target.value}_store"),
            target.value,
            target.dtype,
            tuple(shape[d] for d in order),
            view,
            convert(source, target.dtype),
            tuple(terms),
            mode,
            (self.node,),
        )
        self.graph.nodes.append(node)

    def contiguous(self, shape: Shape, dtype: str) -> Meta:
        """The meta of a row-major tensor."""
        return Meta(shape, row_major(shape).strides, dtype)

    def copy(self, tensor: Tensor, meta: Meta | None = None, name: str = "") -> Tensor:
        """A new value with the tensor's elements, in the memory order of `meta`."""
        meta = meta or self.contiguous(tensor.shape, tensor.dtype)
        return self.pointwise(
            [tensor], lambda loaded: loaded, compute=tensor.dtype, meta=meta, name=name
        )

    def in_memory(self, tensor: Tensor, strides: tuple[Size, ...] | None = None) -> Operand:
        """The tensor as a strided tensor over its value, with exactly these strides if given.

        It is copied if its view is not strided or has other strides.
        """
        shape = tensor.shape
        if 0 in shape:
            return Operand(tensor.value, tensor.dtype, shape, strides or row_major(shape).strides)
        operand = placed(tensor)
        if operand is not None and (
            strides is None or same_strides(shape, strides, operand.strides)
        ):
            return operand if strides is None else replace(operand, strides=strides)
        strides = strides or row_major(shape).strides
        return self._materialized(tensor, strides)

    def _materialized(self, tensor: Tensor, strides: tuple[Size, ...]) -> Operand:
        shape = tensor.shape
        name = f"{tensor.value}_copy"
        still = {d for d, s in enumerate(strides) if s == 0}
        left = tuple(1 if d in still else size for d, size in enumerate(shape))
        if still:
            layout = Layout(left, row_major(shape).strides)
            tensor = self.view(tensor, layout, left)
        copied = self.copy(tensor, Meta(left, strides, tensor.dtype), name)
        made = placed(copied)
        if made is not None and same_strides(left, made.strides, strides):
            return Operand(copied.value, tensor.dtype, shape, strides)
        # gaps between the elements: the memory is larger than the tensor
        order = sorted(
            range(len(left)), key=lambda d: -s if isinstance(s := strides[d], int) else 0
        )
        wide = Buffer(self.fresh(name), tensor.dtype, (span(left, strides),))
        self.graph.nodes.append(wide)
        whole = Tensor(wide.name, (Layout(left, strides),), left, tensor.dtype)
        self.store(whole, copied, order=order)
        return Operand(wide.name, tensor.dtype, shape, strides)

    def kept(
        self,
        value: str,
        shape: Shape,
        order: Sequence[int],
        away: set[int],
        keepdim: bool,
        dtype: str,
    ) -> Tensor:
        """The tensor of a reduction: `shape` with its `away` dimensions dropped or of size 1."""
        kept = [d for d in order if d not in away]
        left = tuple(shape[d] for d in sorted(kept))
        view = stored_view(left, [sorted(kept).index(d) for d in kept])
        whole = tuple(1 if d in away else size for d, size in enumerate(shape))
        return Tensor(value, view, whole if keepdim else left, dtype)

    def reshape(self, tensor: Tensor, shape: Shape) -> Tensor:
        """The same elements in row-major order, under another shape."""
        return Tensor(tensor.value, tensor.view, shape, tensor.dtype)

    def view(self, tensor: Tensor, layout: Layout, shape: Shape) -> Tensor:
        """Another view of the same value: `layout` maps `shape` to the tensor's indices."""
        if 0 in shape:
            return Tensor(tensor.value, (), shape, tensor.dtype)
        return Tensor(tensor.value, compose_views(tensor.view, (layout,)), shape, tensor.dtype)


@lru_cache(maxsize=1 << 12)
def storage_order(shape: Shape, strides: tuple[Size, ...]) -> tuple[int, ...]:
    """Dimensions from the widest stride to the narrowest, if the tensor is dense in that order.

    Otherwise (broadcasts, gaps, strides that cannot be compared), row-major order.
    """
    order = dense_order(shape, strides)
    if order is None or order == sorted(order):
        return tuple(range(len(shape)))
    return (*order, *(d for d, size in enumerate(shape) if size == 1))


def stored_view(shape: Shape, order: Sequence[int]) -> View:
    """Row-major index of `shape` -> flat index of a value whose digits are `shape` in `order`."""
    if list(order) == sorted(order):
        return ()
    return (Layout(shape, strides_in(shape, order)),)


def strides_in(shape: Shape, order: Sequence[int]) -> tuple[Size, ...]:
    """The strides of a tensor that is dense with its dimensions in this order, widest first."""
    widths = dict(zip(order, row_major(tuple(shape[d] for d in order)).strides, strict=True))
    return tuple(widths[d] for d in range(len(shape)))


def reading_order(tensor: Tensor) -> list[int]:
    """The dimensions in the memory order of the tensor's value, widest stride first.

    Row-major if the view is a chain, or if a dimension has no single stride.
    """
    strides = logical_strides(tensor)
    if strides is None or any(not isinstance(s, int) for s in strides):
        return list(range(len(tensor.shape)))
    widths = [abs(s) if isinstance(s, int) else 0 for s in strides]
    if any(not width and tensor.shape[d] != 1 for d, width in enumerate(widths)):
        return list(range(len(widths)))
    return sorted(range(len(widths)), key=lambda d: (-widths[d], d))


def logical_strides(tensor: Tensor) -> tuple[Size, ...] | None:
    """The stride of each dimension in the value's flat space, or None if one has no stride."""
    return view_strides(tensor.view, tensor.shape)


def placed(tensor: Tensor) -> Operand | None:
    """The tensor as a strided one over its value; None if a dimension has no stride."""
    strides = logical_strides(tensor)
    if strides is None:
        return None
    offset = tensor.view[0].offset if tensor.view else 0
    return Operand(tensor.value, tensor.dtype, tensor.shape, strides, offset)
