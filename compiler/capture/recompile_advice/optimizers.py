"""Settings of an optimizer that a scheduler writes in each step."""

from __future__ import annotations

import ast
import re

from tcw.compiler.capture.advice.broken import Advised
from tcw.compiler.capture.advice.user_source import UserSource, by_changes
from tcw.compiler.capture.recompile_advice.changed import ChangedValue, Settings
from tcw.compiler.protocol.edits.source_text import dotted
from tcw.compiler.trace.records import Advice

_SETTING = re.compile(r"^.*\.param_groups\[\d+\]\['(?P<name>\w+)'\](\[\d+\])?$")
"""A setting of a parameter group of a `torch.optim.Optimizer`."""
_CYCLES = ("OneCycleLR", "CyclicLR")
LIMIT = "torch._dynamo.config.recompile_limit = 64"


def is_setting(source: str) -> bool:
    return _SETTING.match(source) is not None


def setting(changed: ChangedValue, settings: Settings) -> Advised:
    match = _SETTING.match(changed.source)
    name = match["name"] if match else ""
    tried = settings.get("automatic_dynamic_shapes") and settings.get("specialize_float") is False
    why = f"{'the first' if tried else 'each'} value is compiled in"
    if name == "lr":
        return _rate(changed, why)
    return (*_without_cycle(changed, name, why), *_further(name))


def _rate(changed: ChangedValue, why: str) -> Advice:
    """The constructor's own value: the scheduler fills the tensor that holds it."""
    start = changed.facts.default or changed.expected
    text = f"Pass it to the optimizer as a tensor, which a scheduler then fills: {why}"
    for source, call in _calls(changed, (changed.facts.owner,)):
        given = next((one.value for one in call.keywords if one.arg == "lr"), None)
        if given is None and len(call.args) > 1 and not isinstance(call.args[1], ast.Starred):
            given = call.args[1]
        if given is None:
            changes = source.with_keyword(call, "lr", f"torch.tensor({start})")
        else:
            changes = source.replaced((given, f"torch.tensor({ast.unparse(given)})"))
        if changes:
            return by_changes(text, changes)
    return Advice(text=text, code=f"lr=torch.tensor({start})")


def _without_cycle(changed: ChangedValue, name: str, why: str) -> tuple[Advice, ...]:
    if name not in ("betas", "momentum"):
        return ()
    text = f"If only the learning rate has to cycle, leave {name} alone: the scheduler writes "
    text += f"another number in each step, and {why}"
    for source, call in _calls(changed, _CYCLES):
        if changes := source.with_keyword(call, "cycle_momentum", "False"):
            return (by_changes(text, changes),)
    return (Advice(text=text, code="cycle_momentum=False"),)


def _further(name: str) -> tuple[Advice, ...]:
    return (
        Advice(
            text=f"Or let torch compile each value of {name}, up to a higher limit, if there are "
            "few of them",
            code=LIMIT,
        ),
    )


def _calls(changed: ChangedValue, names: tuple[str, ...]) -> list[tuple[UserSource, ast.Call]]:
    """The only call of the user's file that makes such an object; [] if there are several."""
    source = changed.call.source if changed.call is not None else None
    found = [
        (source, call)
        for call in (source.all(ast.Call) if source is not None else ())
        if source is not None and dotted(call.func).rpartition(".")[2] in names
    ]
    return found if len(found) == 1 else []
