"""What to do about a recompile, by what changed. Gives no advice if nothing helps.

A text starts with what to do, with a capital letter and no full stop; code is what to paste, and
says where (`Advice.place`, `Advice.changes`) if it can be tried. Each rule is a function of one
`ChangedValue`; `RULES` maps what changed to its rule. Of several pieces of advice, the first
changes least.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcw.compiler.capture.advice.broken import as_advice
from tcw.compiler.capture.recompile_advice import (
    containers,
    late_attributes,
    objects,
    sizes,
    state,
    tensors,
    values,
)
from tcw.compiler.capture.recompile_advice.changed import (
    ARGUMENT,
    STACK,
    AdviceRule,
    ChangedValue,
    Facts,
    Settings,
)
from tcw.compiler.trace.records import Advice

__all__ = ["ARGUMENT", "RULES", "STACK", "ChangedValue", "Facts", "advise"]


def advise(changed: Sequence[ChangedValue], settings: Settings) -> tuple[Advice, ...]:
    """Advice on the first of `changed`; the rest are the failures of other entries."""
    if not changed:
        return ()
    decisive = changed[0]
    rule = RULES.get(decisive.what)
    if decisive.what == "size":
        decisive = _widest(changed)
    if rule is None:
        return ()
    return as_advice(rule if isinstance(rule, str) else rule(decisive, settings))


def _widest(changed: Sequence[ChangedValue]) -> ChangedValue:
    """Among the entries that failed on the same size, one that a symbolic size would serve."""
    for item in changed:
        same = (item.what, item.source, item.index) == (
            changed[0].what,
            changed[0].source,
            changed[0].index,
        )
        if same and not {item.expected, item.seen} & {"0", "1"}:
            return item
    return changed[0]


RULES: dict[str, AdviceRule | str] = {
    "size": sizes.size,
    "shape": sizes.shape,
    "rank": tensors.rank,
    "stride": tensors.stride,
    "dtype": tensors.dtype,
    "device": tensors.device,
    "requires_grad": tensors.requires_grad,
    "dispatch key set": state.dispatch_keys,
    "alias": tensors.alias,
    "marking": "Mark the tensor dynamic before the first call: it was marked later",
    "value": values.value,
    "length": containers.length,
    "keys": containers.keys,
    "identity": objects.identity,
    "type": objects.type_of,
    "attribute": late_attributes.absent,
    "deallocated": objects.deallocated,
    "state": state.state,
    "backend": (
        "Compile once and keep the result: torch.compile was called again with another "
        "backend for the same function"
    ),
}
"""Rules by `GuardFailure.what`; a text is the advice in every such case."""
