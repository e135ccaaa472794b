"""Whether an operation with a lowering stays an ATen call: because that is estimated to be faster,
or because of an override."""

from __future__ import annotations

from functools import cache
from typing import Any

from torch import fx

from tcw.compiler.control.gate import Gate
from tcw.compiler.control.hooks import Hook, resolve
from tcw.compiler.loops.dtypes import BYTES
from tcw.compiler.loops.sizes import product
from tcw.compiler.lowering.calls import Operation
from tcw.compiler.lowering.registry import Worth
from tcw.compiler.lowering.tensors import Meta
from tcw.compiler.protocol.decision import Decision, Detail

KIND = "lowering"
LOOPS = "loops"
ATEN = "aten"

_HAS = "torch._C:_dispatch_has_computed_kernel_for_dispatch_key"

HOOK = Hook(
    name="kernels of ATen",
    offers="operations left to ATen, by an override or where its kernel is faster",
    needs=(_HAS,),
    test="lowering/test_kept.py",
)

MEANS = "an ATen call: no loop nest computes it, and its inputs and results go through memory"

_VIEWS = frozenset({"aten._unsafe_view.default", "aten.lift_fresh.default"})
"""Operations whose result is a view of their argument, although their schema does not say so."""


class Kept:
    """Consults the gate about the operations of one graph."""

    def __init__(self, gate: Gate, graph: str) -> None:
        self._gate = gate
        self._graph = graph

    def as_call(
        self, node: fx.Node, known: Operation, metas: tuple[Meta | None, ...], worth: Worth | None
    ) -> bool:
        """Whether an operation with a lowering becomes a call."""
        illegal = _illegal(node.target, known)
        numbers: dict[str, float] = {} if (made := _bytes(metas)) is None else {"write_bytes": made}
        default, rule = LOOPS, "has a lowering"
        reason = f"as loops, {known.name} can share a nest with its producers and readers"
        if worth is not None:
            numbers |= {"loops_ns": round(worth.loops, 2), "aten_ns": round(worth.aten, 2)}
            faster = leaves(worth) and not illegal
            default, rule = (ATEN, "ATen is faster") if faster else (LOOPS, "loops are faster")
            reason = (
                f"{worth.why}: {worth.loops:.2f} ns a result as loops, {worth.aten:.2f} in ATen"
            )
        decision = Decision(
            self._graph,
            KIND,
            (node.name,),
            default,
            (LOOPS, ATEN),
            rule,
            reason,
            numbers,
            {ATEN: illegal} if illegal else {},
            (lambda: Detail(origins=(node.name,), means=MEANS)) if self._gate.asks else None,
        )
        if illegal and decision.id not in self._gate.overrides:
            return False
        return self._gate.decide(decision) == ATEN

    def is_call(self, node: fx.Node, why: str, *, asked: bool) -> None:
        """Record a call for which there was no choice. It goes to the gate if loops were requested,
        or if `as_call` has reported another decision (`asked`)."""
        decision = Decision(
            self._graph,
            KIND,
            (node.name,),
            ATEN,
            (LOOPS, ATEN),
            "no lowering",
            why,
            forbidden={LOOPS: ("no lowering", why)},
        )
        if asked or decision.id in self._gate.overrides:
            self._gate.decide(decision)


def leaves(worth: Worth | None) -> bool:
    """Whether an operation is left to ATen if nobody decides otherwise."""
    return worth is not None and worth.aten < worth.loops


def _illegal(target: Any, known: Operation) -> tuple[str, str] | None:
    """The rule that forbids an ATen call, with its reason."""
    if (known.shares and not known.writes) or known.name in _VIEWS:
        return "view", f"{known.name} is a view: there is nothing to compute"
    if not _has_kernel(target):
        return "no kernel", f"{known.name} is a step of a decomposition: ATen has no kernel for it"
    return None


@cache
def _has_kernel(target: Any) -> bool:
    name = f"{target._schema.name}.{target._schema.overload_name}".rstrip(".")
    if not name.startswith(("aten::", "mkldnn::")) or HOOK.missing():
        return False
    has: Any = resolve(_HAS)
    return bool(has(name, "CPU"))


def _bytes(metas: tuple[Meta | None, ...]) -> int | None:
    """Total size of the results in bytes; None if a size or dtype is unknown."""
    total = 0
    for meta in metas:
        if meta is not None:
            count = product(meta.shape)
            if not isinstance(count, int) or meta.dtype not in BYTES:
                return None
            total += count * BYTES[meta.dtype]
    return total
