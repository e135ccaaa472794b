"""torch's global state, which a call changed."""

from __future__ import annotations

import ast

from tcw.compiler.capture.advice.broken import Advised
from tcw.compiler.capture.advice.user_source import by_changes
from tcw.compiler.capture.recompile_advice.changed import ChangedValue, Settings
from tcw.compiler.protocol.edits.source_text import dotted
from tcw.compiler.trace.records import Advice

_STATES = {
    "grad mode": "Make all calls in one grad mode, or warm up both: a call under torch.no_grad() "
    "and one without it are compiled separately",
    "autocast": "Make all calls inside torch.autocast or all outside, or warm up both",
    "num threads": "Call torch.set_num_threads() once, at startup: it was called between the calls",
    "deterministic algorithms": "Call torch.use_deterministic_algorithms() once, at startup: it "
    "was called between the calls",
    "default dtype": "Call torch.set_default_dtype() once, at startup: it was called between "
    "the calls",
    "torch function": "Make all calls under the same torch function mode (such as `with "
    "torch.device(...)` or torch.set_default_device), or warm up each",
    "saved-tensor hooks": "Make all calls under the same hooks on saved tensors, or warm up each",
    "default device": "Call torch.set_default_device() once, at startup: it was called between "
    "the calls",
}


def state(changed: ChangedValue, settings: Settings) -> Advised:
    names = [name for name in _STATES if name in changed.name]
    return tuple(Advice(text=_STATES[name]) for name in names) or (
        Advice(text="Set torch's global settings once, at startup: one changed between the calls"),
    )


def dispatch_keys(changed: ChangedValue, settings: Settings) -> Advised:
    """Other dispatch keys of the same tensor, as inference mode gives it."""
    made = Advice(
        text="Create the tensor the same way in each call: under torch.inference_mode() or a "
        "functional transform it gets other dispatch keys"
    )
    if changed.call is None:
        return made
    source, line = changed.call.source, changed.call.location.line
    for block in source.all(ast.With):
        if not block.lineno <= line <= (block.end_lineno or line):
            continue
        for item in block.items:
            call = item.context_expr
            mode = dotted(call.func) if isinstance(call, ast.Call) and not call.args else ""
            if mode.rpartition(".")[2] == "inference_mode":
                text = "Call it under torch.no_grad() as elsewhere: inference mode gives tensors "
                text += "other dispatch keys, and each set of them is compiled separately"
                return (by_changes(text, source.replaced((call, "torch.no_grad()"))), made)
    return made
