"""The attention-mask pass: masks that no input decides are dropped, or become `is_causal`.

Under capture a model cannot look at its mask, so it passes one where eager has none (transformers
build it by comparing positions). With a mask PyTorch's fastest attention kernels are out of
question. But a mask whose operations start from `arange`, `ones` and the like is the same in every
call: it is computed here, once, and compared with what a kernel needs no mask for. The graph is
Dynamo's, before AOTAutograd, so that the kernel is chosen without the mask, for training too, on
CPUs and GPUs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import fx
from torch.fx.node import map_aggregate

from tcw.compiler.rewrites.subject import Subject, choose

KIND = "mask"
NONE = "none"
CAUSAL = "is-causal"
KEPT = "mask"
MEANS = "which mask the attention kernel is given; the values are the same"

ATTENTION = torch.nn.functional.scaled_dot_product_attention
_PLACES = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
"""The parameters of attention by position."""
_MADE = (
    torch.arange,
    torch.ones,
    torch.zeros,
    torch.full,
    torch.eye,
    torch.tensor,
    torch.scalar_tensor,
)
"""Where masks start: the same in each call, unless a size or number is an input."""
MOST = 1 << 26
"""Elements: larger masks are not computed."""


class _Varies(Exception):
    """A value is not the same in each call."""


def attention_masks(subject: Subject) -> int:
    """Rewrite Dynamo's graph in place and return the number of attentions that lost a mask."""
    module = subject.module
    found = [(node, _argument(node, "attn_mask")) for node in module.graph.nodes if _masked(node)]
    if not found:
        return 0
    masks = _Masks(module)
    changed = 0
    with _one_thread():
        kinds = _kinds(found, masks)
    for (node, _), (kind, reason) in zip(found, kinds, strict=True):
        if kind is None or not _wanted(subject, node, kind, reason):
            continue
        _set(node, "attn_mask", None)
        if kind == CAUSAL:
            _set(node, "is_causal", True)
        changed += 1
    return changed


def _masked(node: fx.Node) -> bool:
    return (
        node.op == "call_function"
        and node.target is ATTENTION
        and isinstance(_argument(node, "attn_mask"), fx.Node)
        and not _argument(node, "is_causal")
    )


def _argument(node: fx.Node, name: str) -> Any:
    place = _PLACES.index(name)
    return node.args[place] if place < len(node.args) else node.kwargs.get(name)


def _set(node: fx.Node, name: str, value: Any) -> None:
    place = _PLACES.index(name)
    if place < len(node.args):
        node.update_arg(place, value)
    else:
        node.update_kwarg(name, value)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Masks are small, and threads of OpenMP spin for milliseconds after each operation: on 16
    cores, a dozen of masks took ten CPU seconds."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _kinds(found: Sequence[tuple[fx.Node, fx.Node]], masks: _Masks) -> list[tuple[str | None, str]]:
    """What replaces the mask of each attention, and why. Layers share a mask: it is looked at once
    for all those of one length."""
    known: dict[tuple[fx.Node, int | None], tuple[str | None, str]] = {}
    for node, mask in found:
        key = mask, _length(node)
        if key not in known:
            known[key] = _kind(mask, masks, key[1])
    return [known[mask, _length(node)] for node, mask in found]


def _kind(mask: fx.Node, masks: _Masks, length: int | None) -> tuple[str | None, str]:
    """(what replaces a mask, why); `KEPT` for one that is known, but that no kernel goes without;
    None for one that differs from call to call. `length`: of queries and keys, if it is one."""
    try:
        value = masks.value(mask)
    except _Varies:
        return None, ""
    seen = _visible(value)
    if seen is None:
        return None, ""
    if bool(seen.all()):
        return NONE, "every position may see every other: its operations read no input"
    rows, columns = seen.shape[-2:]
    lower = torch.ones(rows, columns, dtype=torch.bool).tril()
    if bool((seen == lower).all()) and rows == columns == length:
        return CAUSAL, f"{rows} x {columns}, and each position sees itself and all before it"
    width = int(seen[..., -1, :].sum(-1).max())
    if rows == columns and bool((seen == (lower & ~lower.tril(-width))).all()):
        return (
            KEPT,
            f"a window of {width} positions: no kernel of PyTorch's takes one without a mask",
        )
    return KEPT, "it is the same in each call, but neither full nor causal"


def _length(node: fx.Node) -> int | None:
    """The number of queries, if it is known to be that of the keys."""
    lengths = []
    for name in ("query", "key"):
        given = _argument(node, name)
        value = given.meta.get("example_value") if isinstance(given, fx.Node) else None
        if not isinstance(value, torch.Tensor) or value.dim() < 2:
            return None
        lengths.append(value.shape[-2])
    same = all(isinstance(length, int) for length in lengths) and lengths[0] == lengths[1]
    return lengths[0] if same else None


def _visible(value: torch.Tensor) -> torch.Tensor | None:
    """Where a mask lets through; None if it weighs instead."""
    if value.dim() < 2:
        return None
    if value.dtype == torch.bool:
        return value
    if not value.dtype.is_floating_point:
        return None
    through, stopped = value == 0, value <= torch.finfo(value.dtype).min
    return through if bool((through | stopped).all()) else None


def _wanted(subject: Subject, node: fx.Node, kind: str, reason: str) -> bool:
    chosen = choose(
        subject,
        kind=KIND,
        nodes=(node.name,),
        default=kind,
        choices=(kind,) if kind == KEPT else (kind, KEPT),
        rule={NONE: "all-true", CAUSAL: "causal", KEPT: "constant"}[kind],
        reason=reason,
        means=MEANS,
    )
    return chosen != KEPT


class _Masks:
    """The values of a graph that are the same in each call, computed on the CPU on demand."""

    def __init__(self, module: fx.GraphModule) -> None:
        self._values: dict[fx.Node, Any] = {}
        self._varies: set[fx.Node] = set()
        self._random = False
        for node in module.graph.nodes:
            if self._depends(node):
                self._varies.add(node)
            if _writes(node):  # what it writes is no longer what its operation made
                self._varies |= _related(node)

    def value(self, node: fx.Node) -> torch.Tensor:
        """Raises `_Varies`."""
        if self._random:
            raise _Varies
        state = torch.get_rng_state()
        try:
            with torch.no_grad():
                value = self._of(node)
        except _Varies:
            raise
        except Exception as error:  # it does not run here: nothing is known of it
            raise _Varies from error
        finally:
            self._random = not torch.equal(state, torch.get_rng_state())
            torch.set_rng_state(state)
        if self._random or not isinstance(value, torch.Tensor):
            raise _Varies
        return value

    def _depends(self, node: fx.Node) -> bool:
        if node.op not in ("call_function", "call_method"):
            return True
        if any(input_node in self._varies for input_node in node.all_input_nodes):
            return True
        if not node.all_input_nodes and node.target not in _MADE:
            return True
        example = node.meta.get("example_value")
        return isinstance(example, torch.Tensor) and not _small(example)

    def _of(self, node: fx.Node) -> Any:
        if node in self._varies:
            raise _Varies
        if node not in self._values:
            args, kwargs = map_aggregate((node.args, node.kwargs), self._known)
            if node.op == "call_method":
                result = getattr(args[0], str(node.target))(*args[1:], **kwargs)
            else:
                target: Callable[..., Any] = node.target
                result = target(*args, **kwargs)
            self._values[node] = result
        return self._values[node]

    def _known(self, argument: Any) -> Any:
        if isinstance(argument, fx.Node):
            return self._of(argument)
        if isinstance(argument, torch.device) or str(argument).partition(":")[0] == "cuda":
            return torch.device("cpu")
        return argument


def _small(value: torch.Tensor) -> bool:
    return all(isinstance(size, int) for size in value.shape) and value.numel() <= MOST


def _writes(node: fx.Node) -> bool:
    """Whether a node may write one of its arguments."""
    if node.op == "call_method":
        return str(node.target).endswith("_") and not str(node.target).endswith("__")
    name = getattr(node.target, "__name__", "")
    if getattr(operator, name, None) is node.target:
        return name in _IN_PLACE
    return "out" in node.kwargs or (name.endswith("_") and not name.endswith("__"))


_IN_PLACE = (
    "setitem", "delitem", "iadd", "iand", "iconcat", "ifloordiv", "ilshift", "imatmul", "imod",
    "imul", "ior", "ipow", "irshift", "isub", "itruediv", "ixor",
)  # fmt: skip
"""Python's statements that write: `x[i] = y`, `x += y`."""


HIDDEN = 0
"""The memory of a tensor that does not show its storage."""


def _related(node: fx.Node) -> set[fx.Node]:
    """Nodes that may share memory with an argument of this one."""
    written = set(map(_memory, node.all_input_nodes))
    if not written:
        return set()
    if written & {None, HIDDEN}:
        return set(node.graph.nodes)
    shared = {*written, HIDDEN}
    return {one for one in node.graph.nodes if _memory(one) in shared}


def _memory(node: fx.Node) -> int | None:
    """What a node's tensor shares with its views; None if it is not a tensor, `HIDDEN` if that
    cannot be seen, as of a tensor inside `torch.vmap`."""
    value = node.meta.get("example_value")
    if not isinstance(value, torch.Tensor):
        return None
    try:
        memory: int = value.untyped_storage()._cdata
    except NotImplementedError:
        return HIDDEN
    return memory
