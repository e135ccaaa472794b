"""The driver: an ATen graph (FX, fake tensors in `meta["val"]`) becomes a value graph.

Each node is lowered by the function that its family registered. A node without a lowering, or of a
dtype or device that loops do not support, becomes a call. Symbolic arithmetic never becomes nodes:
what torch knows of a SymInt is a `Size`.

One value may stand for two ATen tensors (a `clone` that changes nothing). Before memory is written
in place, and for the graph's outputs, such a tensor gets its own copy.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any

import torch
from torch import fx

from tcw.compiler.control.gate import Gate
from tcw.compiler.loops.graph import Graph, Subgraph
from tcw.compiler.lowering import higher_order
from tcw.compiler.lowering.builder import Builder
from tcw.compiler.lowering.calls import Operation, call, only_returned, operation, read_in_place
from tcw.compiler.lowering.copied_buffers import written_where_copied
from tcw.compiler.lowering.graph_inputs import FakeTensors, GraphInputs, note_offset
from tcw.compiler.lowering.graph_outputs import GraphOutputs, operands
from tcw.compiler.lowering.kept import Kept, leaves
from tcw.compiler.lowering.ownership import Ownership, replacing
from tcw.compiler.lowering.reals import Real, Reals, StoredNumber
from tcw.compiler.lowering.registry import Lowered, NoLowering, Unsupported, Worth, load_families
from tcw.compiler.lowering.symbolic_sizes import Sizes
from tcw.compiler.lowering.tensors import Meta, Tensor

BY_OVERRIDE = "kept as an ATen call by an override"
_MISSING = object()
_HigherOrder = torch._ops.HigherOrderOperator
_ITEM = torch.ops.aten._local_scalar_dense.default
_FOREIGN_NUMBERS = (torch.SymFloat, torch.SymBool)

_NOTHING = frozenset(
    {
        "aten._assert_tensor_metadata.default",
        "prims._make_token.default",
        "prims._sink_tokens.default",
    }
)
"""They check what the compiler already knows, or only order side effects."""

_PHYSICAL = {
    torch.ops.aten._conj.default: torch.ops.aten._conj_physical.default,
    torch.ops.aten._neg_view.default: torch.ops.aten.neg.default,
}
"""Views that differ from their memory by a flag bit of the tensor, mapped to operations that
materialise them: our loops and views have no such bit."""

_ON_STORAGE = ("aten.set_.", "aten.resize_", "aten._resize_output_", "aten.as_strided_scatter.")
"""They modify the tensor object itself, or count from the start of its storage."""


def lower(
    graph_module: fx.GraphModule,
    name: str,
    device: torch.device | None = None,
    gate: Gate | None = None,
) -> Graph:
    """The value graph of an ATen graph.

    `device` is where loops run; operations elsewhere become calls. None means the device of the
    first tensor. `gate` may keep operations as ATen calls. Raises `Unsupported` if the whole graph
    must run on ATen.
    """
    load_families()
    return _Driver(graph_module, name, device, gate or Gate()).run()


class _Driver:
    def __init__(
        self,
        graph_module: fx.GraphModule,
        name: str,
        device: torch.device | None,
        gate: Gate,
    ) -> None:
        self.module = graph_module
        self.kept = None if gate.silent else Kept(gate, name)
        self.graph = Graph(name)
        self.builder = Builder(self.graph)
        self.builder.about_to_write = self.unshare
        self.sizes = Sizes(self.graph, cache(lambda: frozenset(_lengths(graph_module.graph))))
        self.reals = Reals(self.sizes, self.builder)
        self.values: dict[fx.Node, Any] = {}
        self.fake = FakeTensors(self.sizes, device)
        self.meta = self.fake.meta
        self.is_plain = self.fake.is_plain
        self.unshared: list[tuple[fx.Node, Tensor]] = []
        """Nodes that were given copies because of the current node, with their previous tensors."""
        self.foreign: set[fx.Node] = set()
        """Nodes whose tensors loops cannot use, because of their dtype or device."""
        self.metas: dict[fx.Node, Meta] = {}
        """Metas of the nodes that are a single tensor."""
        self.memory = Ownership()

    def run(self) -> Graph:
        nodes = list(self.module.graph.nodes)
        inputs = GraphInputs(
            self.builder, self.memory, self.fake, self.sizes, self.values, self.metas, self.foreign
        )
        outputs = GraphOutputs(self.builder, self.memory, self.metas, self.sizes, self.value_of)
        self.builder.reserved = frozenset(node.name for node in nodes)
        inputs.of([node for node in nodes if node.op == "placeholder"])
        written = [node for node in nodes if node.target is torch.ops.aten.copy_.default]
        self.builder.written.update(n.args[0].name for n in written)
        self.memory.replacing = replacing(nodes, written)
        for node in nodes:
            try:
                if node.op == "call_function":
                    self.builder.node = node.name
                    self.call_function(node)
                elif node.op == "get_attr":
                    self.builder.node = node.name
                    inputs.constant(node, operator.attrgetter(str(node.target))(self.module))
                elif node.op == "output":
                    self.builder.node = ""
                    self.graph.outputs.extend(outputs.of(node))
                elif node.op != "placeholder":
                    raise Unsupported(f"{node.op} {node.target} in an ATen graph")
            except Unsupported as reason:
                reason.node = reason.node or node
                raise
        self.graph.tensors = dict(operands(self.memory.kept(self.values)))
        written_where_copied(self.graph)
        return self.graph

    # computation

    def call_function(self, node: fx.Node) -> None:
        if node.target is operator.getitem:
            self.getitem(node)
            return
        if isinstance(node.target, _HigherOrder):
            self.higher_order(node)
            return
        value = node.meta.get("val")
        if node.target is _ITEM and self.item(node, value):
            return
        if isinstance(value, torch.Tensor):
            returned, several = [value], False
        elif isinstance(value, torch.SymInt):
            self.values[node] = self.sizes.of(value)
            return
        elif isinstance(value, (int, float)):
            self.values[node] = value
            return
        elif isinstance(value, _FOREIGN_NUMBERS):
            # it may be only an intermediate of a size
            if isinstance(value, torch.SymFloat):
                with suppress(Unsupported):
                    self.values[node] = self.reals.of(value)
            elif value.node.expr == True:  # noqa: E712  sympy's own
                self.values[node] = True
            elif any(isinstance(user.target, _HigherOrder) for user in node.users):
                self.values[node] = self.sizes.named(value.node.expr)
            return
        else:
            several = isinstance(value, (list, tuple))
            returned = list(value) if several else []
        known = operation(_PHYSICAL.get(node.target, node.target))
        if known.name in _NOTHING or (
            known.name == "aten._assert_scalar.default" and self.arguments(node)[0][0] is True
        ):
            self.values[node] = None
            return
        metas = tuple([self.meta(a) if isinstance(a, torch.Tensor) else None for a in returned])
        plain = self.are_plain(node, returned, metas)
        self.builder.metas = metas
        read = self.read_results(node, metas)
        self.builder.unread = frozenset(i for i, meta in enumerate(read) if meta is None)
        results = self.lowered(node, known, metas, plain)
        if several:
            self.values[node] = results
        elif metas:
            assert metas[0] is not None
            self.metas[node] = metas[0]
            self.values[node] = results[0]
        self.memory.note(node, known, results)

    def are_plain(
        self, node: fx.Node, results: Sequence[Any], metas: tuple[Meta | None, ...]
    ) -> bool:
        """Whether loops support all results of a node; if not, it is noted as foreign."""
        if self.fake.device is None:
            self.fake.device = next(
                (a.device for a in results if isinstance(a, torch.Tensor)), None
            )
        plain = all(
            meta is None or self.is_plain(result, meta)
            for result, meta in zip(results, metas, strict=True)
        )
        if not plain:
            self.foreign.add(node)
        return plain

    def item(self, node: fx.Node, value: Any) -> bool:
        """Let loops read a number directly from its tensor, unless it may be used as a size."""
        source = node.args[0]
        tensor = self.values.get(source)
        if source in self.foreign or not isinstance(tensor, Tensor):
            return False
        if not isinstance(value, (torch.SymInt, torch.SymFloat)):
            return False
        self.values[node] = self.reals.item(value, tensor)
        return True

    def getitem(self, node: fx.Node) -> None:
        source, index = node.args
        self.values[node] = found = self.values[source][index]
        if source in self.foreign:
            self.foreign.add(node)
        if isinstance(found, Tensor):
            state = getattr(source.target, "__name__", "") == "run_and_save_rng_state"
            # for the RNG state, the partitioner's metadata has a made-up size
            meta = Meta(found.shape, (1,), found.dtype) if state else self.meta(node.meta["val"])
            self.metas[node] = meta
            self.memory.note_item(node, source, found)

    def lowered(
        self, node: fx.Node, known: Operation, metas: tuple[Meta | None, ...], plain: bool
    ) -> tuple[Tensor | None, ...]:
        """The node's results, from its lowering or from a call."""
        first = len(self.graph.nodes)
        self.builder.on_cpu = self.fake.device is None or self.fake.device.type == "cpu"
        reason = "" if known.wanted else f"no lowering for {known.name}"
        if known.lowering is not None:
            if self.foreign:
                plain = plain and self.foreign.isdisjoint(node.all_input_nodes)
            obstacle = "a dtype or device without loops"
            worth = self.worth(node, known) if plain else None
            kept = plain and (
                leaves(worth) if self.kept is None else self.kept.as_call(node, known, metas, worth)
            )
            if kept:
                reason = f"ATen is faster: {worth.why}" if worth and leaves(worth) else BY_OVERRIDE
            elif plain:
                self.builder.taken_from = node.meta.get("original_aten")
                self.builder.read_in_place = partial(read_in_place, node)
                self.builder.only_returned = partial(only_returned, node)
                replaced = self.memory.replaced_value(node, self.values)
                self.builder.in_place = replaced if self.builder.is_storable(replaced) else ""
                self.unshared.clear()
                try:
                    args, kwargs = self.arguments(node)
                    made = self.checked(node, known.lowering(self.builder, *args, **kwargs), metas)
                    self.memory.note_overwritten(replaced, made, self.values)
                    return made
                except NoLowering as why:
                    obstacle = str(why)
                except (TypeError, ValueError, KeyError):
                    given = (self.values.get(source) for source in node.all_input_nodes)
                    if not any(isinstance(value, (Real, StoredNumber)) for value in given):
                        raise
                    obstacle = "a symbolic number"
                del self.graph.nodes[first:]
                self.share_again()
            if not kept:
                reason = f"{reason}: {obstacle}" if reason else ""
                if self.kept is not None:
                    self.kept.is_call(node, f"{known.name}: {obstacle}", asked=plain)
        elif self.kept is not None:
            self.kept.is_call(node, f"no lowering for {known.name}", asked=False)
        args, kwargs = self.arguments(node)
        value = node.meta.get("val")
        single = not isinstance(value, (list, tuple))
        read = self.read_results(node, metas)
        returned = ([] if value is None else [value]) if single else value
        return self.called(node, known, args, kwargs, returned, read, single, reason)

    def worth(self, node: fx.Node, known: Operation) -> Worth | None:
        if known.estimate is None:
            return None
        args, kwargs = self.arguments(node)
        return known.estimate(self.builder, *args, **kwargs)

    def called(
        self,
        node: fx.Node,
        known: Operation,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        returned: Sequence[Any],
        metas: tuple[Meta | None, ...],
        single: bool,
        reason: str,
    ) -> tuple[Tensor | None, ...]:
        if known.name.startswith(_ON_STORAGE):
            raise Unsupported(f"{known.name} modifies or reads a whole storage")
        strides = {id(tensor): meta.strides for tensor, meta in self.promised(node)}
        results = call(
            self.builder,
            known,
            args,
            kwargs,
            metas,
            single=single,
            reason=reason,
            strides=lambda tensor: strides.get(id(tensor)),
        )
        for result, fake in zip(results, returned, strict=True):
            if result is not None and not self.memory.has_owner(result.value):
                note_offset(self.builder, result.value, fake)
        return results

    def promised(self, node: fx.Node) -> Iterator[tuple[Tensor, Meta]]:
        """The node's tensor arguments, and their metas according to ATen."""
        for source in node.all_input_nodes:
            meta, tensor = self.metas.get(source), self.values.get(source)
            if meta is not None and isinstance(tensor, Tensor):
                yield tensor, meta

    def higher_order(self, node: fx.Node) -> None:
        name = node.target.name()
        value = node.meta.get("val")
        higher_order.refuse_writing(node)
        args, kwargs = self.arguments(node)

        def add_call(
            known: Operation, args: Any, kwargs: Any, returned: list[Any], single: bool
        ) -> tuple[Any, ...]:
            if any(isinstance(a, (list, tuple)) for a in returned):
                raise Unsupported(f"{known.name} returns a list inside {name}")
            metas = tuple(self.meta(a) if isinstance(a, torch.Tensor) else None for a in returned)
            self.are_plain(node, returned, metas)
            reason = "" if known.wanted else f"no lowering for {known.name}"
            if self.kept is not None and known.lowering is None:
                self.kept.is_call(node, f"no lowering for {known.name}", asked=False)
            return self.called(node, known, args, kwargs, returned, metas, single, reason)

        if name not in higher_order.OF_ONE_OPERATION:
            parts = [
                operator.attrgetter(str(input_node.target))(self.module)
                for input_node in node.all_input_nodes
                if isinstance(self.values[input_node], Subgraph)
            ]
            results = higher_order.of_subgraphs(add_call, node, parts, args, kwargs, self.number)
        elif name == "with_effects":
            results = higher_order.with_effects(add_call, args, kwargs, value)
        elif name in ("auto_functionalized", "auto_functionalized_v2"):
            known = {id(tensor): meta for tensor, meta in self.promised(node)}
            results = higher_order.functionalized(
                self.builder, add_call, args, kwargs, value, lambda tensor: known[id(tensor)]
            )
        else:
            value = higher_order.random_value(node)
            results = higher_order.with_random_state(add_call, name, args, kwargs, value)
        self.values[node] = results
        if isinstance(results, Tensor):
            self.metas[node] = self.meta(value)
            self.memory.own(results.value, node)
            return
        for result in results:
            if isinstance(result, Tensor):
                self.memory.show(node, result)

    def checked(
        self, node: fx.Node, lowered: Lowered, metas: tuple[Meta | None, ...]
    ) -> tuple[Tensor | None, ...]:
        results = (lowered,) if isinstance(lowered, Tensor) else lowered or (None,)
        for result, meta in zip(results, metas, strict=True):
            if result is None or meta is None:
                continue
            if result.shape != meta.shape or result.dtype != meta.dtype:
                raise ValueError(
                    f"{node.name} ({node.target}) was lowered to {result.dtype}{result.shape},"
                    f" ATen says {meta.dtype}{meta.shape}"
                )
        return results

    def read_results(
        self, node: fx.Node, metas: tuple[Meta | None, ...]
    ) -> tuple[Meta | None, ...]:
        """The metas of the results that have users."""
        if len(metas) < 2:
            return metas
        if any(user.target is not operator.getitem for user in node.users):
            return metas
        used = {user.args[1] for user in node.users}
        return tuple(meta if i in used else None for i, meta in enumerate(metas))

    def arguments(self, node: fx.Node) -> tuple[list[Any], dict[str, Any]]:
        args = [
            self.value_of(value) if isinstance(value, fx.Node) else self.argument(value)
            for value in node.args
        ]
        keywords = node.kwargs
        return args, {k: self.argument(v) for k, v in keywords.items()} if keywords else {}

    def number(self, value: Any) -> Any:
        """A number in the graph's metadata, if it is known without tensor data."""
        if isinstance(value, torch.SymInt):
            return self.sizes.of(value)
        if isinstance(value, (int, float)):
            return value
        raise Unsupported(f"a {type(value).__name__} that depends on the contents of a tensor")

    def value_of(self, node: fx.Node) -> Any:
        found = self.values.get(node, _MISSING)
        if found is _MISSING:
            raise Unsupported(f"{node.name} is a {type(node.meta.get('val')).__name__}")
        return found

    def argument(self, value: Any) -> Any:
        if value is None or isinstance(value, (int, float)):
            return value
        if isinstance(value, fx.Node):
            return self.value_of(value)
        if isinstance(value, (list, tuple)):
            return [self.argument(item) for item in value]
        if isinstance(value, dict):
            return {key: self.argument(item) for key, item in value.items()}
        return value

    # ownership of memory

    def unshare(self, value: str) -> None:
        """The value's memory is about to be written: give the other nodes that share it a copy."""
        for node in self.memory.take_shared(value):
            shown = self.values[node]
            if isinstance(shown, Tensor):
                self.unshared.append((node, shown))
                copied = self.builder.copy(shown, self.metas[node])
                self.values[node] = copied
                self.memory.own(copied.value, node)

    def share_again(self) -> None:
        """Undo `unshare`: nothing was written after all."""
        for node, shown in self.unshared:
            self.values[node] = shown
            self.memory.share_again(shown.value, node)


def _lengths(graph: fx.Graph) -> Iterator[Any]:
    """The dimensions of all tensors of a graph that are symbolic, as torch's expressions."""
    for node in graph.nodes:
        value = node.meta.get("val")
        for one in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(one, torch.Tensor) and one._has_symbolic_sizes_strides:
                for size in one.shape:
                    if isinstance(size, torch.SymInt):
                        yield size.node.expr
