"""Numbers and other constants that changed."""

from __future__ import annotations

import ast
import re

from tcw.compiler.capture.advice.broken import Advised
from tcw.compiler.capture.advice.user_source import by_changes
from tcw.compiler.capture.recompile_advice import late_attributes, optimizers, uses
from tcw.compiler.capture.recompile_advice.at_call import compile_dynamic, pass_instead
from tcw.compiler.capture.recompile_advice.changed import (
    ARGUMENT,
    ChangedValue,
    Settings,
    attribute_of,
)
from tcw.compiler.protocol.edits.source_text import Replacement, span_of
from tcw.compiler.trace.records import Advice

_FLOAT = re.compile(r"^-?(\d+\.\d*(e[+-]?\d+)?|\d+e[+-]?\d+|inf|nan)$")
_INT = re.compile(r"^-?\d+$")
_UNSPECIALISED = "torch._dynamo.config.allow_unspec_int_on_nn_module = True"


def value(changed: ChangedValue, settings: Settings) -> Advised:
    name = changed.name
    if name.endswith(".training"):
        return (
            "Call the model once in train() and once in eval() mode during warm-up: both "
            "are compiled once and kept"
        )
    if changed.expected == "None" and attribute_of(changed.source):
        return late_attributes.was_none(changed)
    if _INT.match(changed.expected) and not changed.facts.indexes_list:
        return _integer(changed)
    if uses.decides_on(changed):
        return _each_value(changed)
    if optimizers.is_setting(changed.source):
        return optimizers.setting(changed, settings)
    if _FLOAT.match(changed.expected):
        return _float(changed, settings)
    if changed.facts.indexes_list:
        return _chosen_item(changed)
    return (
        f"Keep {name} the same, or call once with each value during warm-up: each value "
        "is compiled separately"
    )


def _chosen_item(changed: ChangedValue) -> tuple[Advice, ...]:
    """A number that chooses an item of a list cannot be a symbol; an index of a tensor can."""
    name = changed.name
    idea = Advice(
        text=f"Pass the item itself instead of the list and {name}: the number chooses an item of "
        "a list, so that each value is compiled separately"
    )
    limit = Advice(
        text=f"Or let torch compile each value of {name}, if there are few", code=optimizers.LIMIT
    )
    stacked = _stacked(changed)
    return (stacked, idea, limit) if stacked is not None else (idea, limit)


def _stacked(changed: ChangedValue) -> Advice | None:
    """The list that the caller passes, as one tensor of its items."""
    names = [
        node.value.id
        for node in ast.walk(changed.statement or ast.Module([], []))
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)
    ]
    passed = changed.call.passed.get(names[0]) if changed.call is not None and names else None
    if changed.call is None or not isinstance(passed, ast.Name):
        return None
    made = [
        node.value
        for node in changed.call.source.all(ast.Assign)
        if [ast.unparse(target) for target in node.targets] == [passed.id]
    ]
    if len(made) != 1 or not isinstance(made[0], (ast.List, ast.ListComp)):
        return None
    form = f"torch.stack({ast.unparse(made[0])})"
    changes = changed.call.source.replaced((made[0], form))
    setting = _UNSPECIALISED if changed.source.startswith("L['self']") else ""
    text = f"Pass one stacked tensor instead of the list: {changed.name} can be a symbol then"
    return by_changes(text, changes, setting) if changes else None


def _each_value(changed: ChangedValue) -> Advice:
    return Advice(
        text=f"Call once with each value during warm-up, or keep {changed.name} the same: the code "
        "branches or loops on it, so that each value is compiled separately"
    )


def _integer(changed: ChangedValue) -> Advised:
    if changed.source.startswith("L['self']"):
        if uses.decides_on(changed):
            return _each_value(changed)
        return Advice(
            text=f"Treat int attributes as dynamic, or keep {changed.name} as a tensor: by default "
            "each value is compiled in",
            code=_UNSPECIALISED,
        )
    if changed.source.startswith("G["):
        return _each_value(changed) if uses.decides_on(changed) else _keep(changed)
    if uses.loops_on(changed) is not None:
        return _each_value(changed)
    it = "the value" if changed.on_stack else changed.name
    dynamic = compile_dynamic(
        f"If the code does not branch on {it}, this makes it a symbol from the "
        "first call; else each value costs a compile",
    )
    # with an inequality, dynamic=True has one compile for each side of it
    return (_each_value(changed), dynamic) if uses.decides_on(changed) else dynamic


def _keep(changed: ChangedValue) -> Advice:
    return Advice(
        text=f"Pass {changed.name} as an argument, which can be a symbol, or keep it the same: "
        "torch compiles the value of a global in"
    )


def _float(changed: ChangedValue, settings: Settings) -> Advised:
    name = changed.name
    argument = ARGUMENT.match(changed.source) is not None
    tried = settings.get("automatic_dynamic_shapes") and settings.get("specialize_float") is False
    why = f"{'the first' if tried else 'each'} value is compiled in"
    if changed.on_stack:
        advice = Advice(
            text="It was made by the call before the graph break: keep it a tensor there, if the "
            f"code only calculates with it; {why}"
        )
    elif argument and changed.made:
        advice = Advice(
            text=f"If the code only calculates with {name}, keep it in a tensor from before the "
            f"graph break on: {why}",
        )
    elif argument:
        advice = pass_instead(
            changed,
            f"If the code only calculates with it, pass a tensor in every call: {why}",
            "torch.tensor({})",
            ("--as-tensor", name) if name.isidentifier() else (),
        )
    elif attribute_of(changed.source):
        advice = _buffer(changed, why)
    else:
        advice = Advice(text=f"If the code only calculates with {name}, keep it in a tensor: {why}")
    if tried:
        later = "If nothing is done, torch tries a float that changed once as a symbol, so that "
        return (advice, Advice(text=later + "later values need no compile"))
    return advice


def _buffer(changed: ChangedValue, why: str) -> Advice:
    """The number as a buffer of its module; in the user's source, with all that writes to it."""
    attribute = attribute_of(changed.source)
    text = f"In __init__ of its module, instead of the plain number; change it with fill_(): {why}"
    code = f"self.register_buffer({attribute!r}, torch.tensor({changed.expected}))"
    plain = Advice(text=text, code=code)
    source, made = late_attributes.initialised(changed, attribute)
    if source is None or made is None:
        return plain
    form = f"self.register_buffer({attribute!r}, torch.tensor({ast.unparse(made.value)}))"
    writes = [Replacement(span_of(made), form)]
    for node in source.all(ast.Assign):
        targets = [one for one in node.targets if isinstance(one, ast.Attribute)]
        if node is not made and any(one.attr == attribute for one in targets):
            if len(node.targets) != 1 or node.lineno != node.end_lineno:
                return plain
            target = ast.unparse(targets[0])
            writes.append(Replacement(span_of(node), f"{target}.fill_({ast.unparse(node.value)})"))
    changes = source.edited(writes)
    return by_changes(text, changes) if changes else plain
