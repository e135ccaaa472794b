"""What else is guarded of a tensor: dimensions, layout, dtype, device, gradients, aliases."""

from __future__ import annotations

import re

from tcw.compiler.capture.advice.broken import Advised
from tcw.compiler.capture.recompile_advice.at_call import do_before, pass_instead
from tcw.compiler.capture.recompile_advice.changed import ChangedValue, Settings
from tcw.compiler.trace.records import Advice

_INT = re.compile(r"^-?\d+$")


def rank(changed: ChangedValue, settings: Settings) -> Advised:
    expected, seen = changed.expected, changed.seen
    text = f"If it means the same, pass {expected} dimensions in every call: each number of "
    text += "dimensions is compiled separately"
    if _INT.match(expected) and _INT.match(seen):
        # in a call that has as many dimensions already, both forms leave the tensor as it is
        if int(seen) > int(expected) > 0:
            return pass_instead(changed, text, f"{{}}.flatten(0, -{expected})")
        if int(seen) == int(expected) - 1:
            return Advice(text=text, code=f"{changed.subject} = {changed.subject}.unsqueeze(0)")
    return Advice(text=text)


def stride(changed: ChangedValue, settings: Settings) -> Advised:
    point = _the_point(changed, "every call")
    if changed.facts.contiguous:
        return pass_instead(
            changed,
            f"Do it before {point}: it is contiguous for torch, but a dimension of size 1 has "
            "another stride, which the guard compares",
            "{}.clone(memory_format=torch.contiguous_format)",
        )
    return pass_instead(
        changed,
        f"Do it before {point}: the same shape came in another "
        "memory layout (a transposed, sliced or channels-last view)",
        "{}.contiguous()",
    )


def _the_point(changed: ChangedValue, call: str = "the call") -> str:
    """Where the value can still be changed."""
    if not changed.made:
        return call
    return "the graph break" if changed.resumed else "the function that is compiled"


def dtype(changed: ChangedValue, settings: Settings) -> Advised:
    return pass_instead(
        changed,
        f"If the other dtype is not intended, convert before {_the_point(changed)}; else "
        "each dtype costs a compile",
        f"{{}}.to(torch.{changed.expected})",
    )


def device(changed: ChangedValue, settings: Settings) -> Advised:
    known = repr(changed.expected) if changed.expected.isalpha() else "device"
    return pass_instead(
        changed,
        f"If the other device is not intended, move it before {_the_point(changed)}; else "
        "each device costs a compile",
        f"{{}}.to({known})",
    )


def requires_grad(changed: ChangedValue, settings: Settings) -> Advised:
    if changed.made:
        return (
            f"Compute {changed.subject} from inputs of which the same need gradients in every "
            "call: the compiled graph computes them"
        )
    if changed.seen != "True":
        text = "If its gradient is needed, request it in every call: the compiled graph computes it"
        return do_before(text, [f"{changed.subject}.requires_grad_()"])
    if changed.facts.leaf:
        return pass_instead(
            changed,
            "If its gradient is not needed, detach it before the call",
            "{}.detach()",
        )
    expected = "One compile with a gradient of it and one without are expected where one block "
    return (
        Advice(text=f"{expected}feeds the next: the gradient passes through it"),
        pass_instead(
            changed,
            "Or request it in the first call, too: its gradient is computed then as well",
            "{0} if {0}.requires_grad else {0}.detach().requires_grad_()",
        ),
    )


def alias(changed: ChangedValue, settings: Settings) -> Advised:
    return (
        "Pass a copy (`.clone()`) instead of the same tensor twice, or pass it twice in "
        "every call: the two cases are compiled separately"
    )
