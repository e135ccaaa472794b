"""The outputs of a lowered graph, and the location of each of its tensors in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import fx

from tcw.compiler.loops.graph import Operand
from tcw.compiler.loops.layouts import same_strides
from tcw.compiler.loops.sizes import Size, add
from tcw.compiler.lowering.builder import Builder, logical_strides, placed
from tcw.compiler.lowering.ownership import Ownership
from tcw.compiler.lowering.reals import Real, StoredNumber
from tcw.compiler.lowering.registry import Unsupported
from tcw.compiler.lowering.symbolic_sizes import Sizes
from tcw.compiler.lowering.tensors import Meta, Tensor

OutputValue = Operand | Size | bool | float | None


def operands(values: Mapping[fx.Node, Any]) -> Iterator[tuple[str, Operand]]:
    """Each node that is a strided tensor over a value, with its operand."""
    for node, shown in values.items():
        if isinstance(shown, Tensor):
            operand = placed(shown)
            if operand is not None:
                yield node.name, operand


@dataclass(frozen=True, slots=True)
class GraphOutputs:
    """Gives each output its own memory, unless it is a view of an input or of another output."""

    _builder: Builder
    _memory: Ownership
    _metas: Mapping[fx.Node, Meta]
    _sizes: Sizes
    _value_of: Callable[[fx.Node], Any]

    def of(self, node: fx.Node) -> Iterator[OutputValue]:
        """The outputs of an output node, in order. Raises `Unsupported`."""
        handed: dict[str, fx.Node] = {}
        arg = node.args[0]
        for item in arg if isinstance(arg, (list, tuple)) else (arg,):
            try:
                output = self._output(item, handed)
            except Unsupported as reason:
                reason.node = item if isinstance(item, fx.Node) else None
                raise
            yield output

    def _output(self, item: Any, handed: dict[str, fx.Node]) -> OutputValue:
        if not isinstance(item, fx.Node):
            if isinstance(item, (bool, int, float, type(None))):
                return item
            raise Unsupported(f"the graph returns a {type(item).__name__}")
        shown = self._value_of(item)
        if not isinstance(shown, Tensor):
            if isinstance(shown, (list, tuple)):
                raise Unsupported("the graph returns a list")
            if isinstance(shown, (Real, StoredNumber)):
                raise Unsupported("the graph returns a symbolic number")
            number: OutputValue = shown
            return number
        self._builder.node = item.name
        meta = self._metas[item]
        root = self._memory.root(item)
        owner = self._memory.owner(shown.value, root)
        given = owner is not root and owner.op in ("placeholder", "get_attr")
        if given or handed.setdefault(shown.value, root) is not root:
            shown = self._builder.copy(shown, meta)
        elif logical_strides(shown) is None and (view := self._view_of(root, item, shown)):
            return view
        return self._builder.in_memory(shown, meta.strides)

    def _view_of(self, root: fx.Node, item: fx.Node, shown: Tensor) -> Operand | None:
        """The output as a view of the tensor whose memory it shares, if that is in memory."""
        if root is item or root not in self._metas:
            return None
        whole = self._value_of(root)
        if not isinstance(whole, Tensor):
            return None
        start = item.meta["val"].storage_offset() - root.meta["val"].storage_offset()
        metas = self._metas
        return _as_view_of(whole, metas[root], start, shown, metas[item], self._sizes)


def _as_view_of(
    root: Tensor, root_meta: Meta, start: Any, shown: Tensor, meta: Meta, sizes: Sizes
) -> Operand | None:
    """The output as a view with the strides that torch predicts, for layouts that do not compose.

    AOTAutograd regenerates an output that is a view from its base and reads the storage offset from
    ours, so returning a copy would be silently wrong.

    Layouts fail to compose if a symbolic start is not known to stay inside its dimension. `start`
    is the offset of the view from the tensor `root`, whose memory it shows, in elements (SymInt).
    Returns None if the value's memory layout is not what torch expects.
    """
    if shown.value != root.value or shown.dtype != root.dtype or 0 in (*shown.shape, *root.shape):
        return None
    whole = placed(root)
    if whole is None or not same_strides(root.shape, whole.strides, root_meta.strides):
        return None
    offset = add(whole.offset, sizes.of(start))
    return Operand(shown.value, shown.dtype, shown.shape, meta.strides, offset)
