"""What to do about a recompile, by what changed. Gives no advice if nothing helps.

A text starts with what to do, with a capital letter and no full stop; code is what to paste. Each
rule is a function of one `ChangedValue`; `RULES` maps what changed to its rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tcw.compiler.capture.advice.broken import Advised, as_advice
from tcw.compiler.trace.records import Advice


@dataclass(frozen=True)
class ChangedValue:
    """One failed guard, from `parse_failed_guard` and the recorded guards."""

    what: str
    kind: str = ""
    source: str = ""
    """torch's expression."""
    subject: str = ""
    """`source` in the terms of the frame's caller."""
    name: str = ""
    """What was compared, in the same terms: the subject, or one of its sizes or settings."""
    expected: str = ""
    seen: str = ""
    index: int | None = None
    guard: str = ""
    """The condition in readable form."""
    described: str = ""
    """Description of the guarded value when the entry was compiled."""
    resumed: bool = False
    """The frame resumes after a graph break."""
    made: bool = False
    """The model computed the value, before that break or in a function that runs in Python: no
    argument that the caller could change."""
    sizes: tuple[tuple[str, int], ...] = ()
    """If a size failed: each (argument, dimension) whose size changed."""
    by_chance: bool = False
    """Two sizes that differ now were equal in the call that compiled: torch took them for one."""
    line: str = ""
    """The source line that made torch depend on the value."""
    passed: Literal["", "*", "**"] = ""
    """Set if the source is the frame's whole `*args` or `**kwargs`."""
    wrapped: bool = False
    """The frame is a decorator's wrapper, and the entry is for another function that it wraps."""


Settings = Mapping[str, object]
AdviceRule = Callable[[ChangedValue, Settings], Advised]

ARGUMENT = re.compile(r"^L\['(?!self'\])[^']+'\](\[[^\]]+\])*$")
"""A source that is an argument of the frame, or an item of one."""
STACK = re.compile(r"^L\['___stack\d+'\]$")
"""A value that was on the stack at a graph break; no name of the user's."""
_MODULE_STATE = re.compile(r"\._(parameters|buffers)\[")
_FLOAT = re.compile(r"^-?(\d+\.\d*(e[+-]?\d+)?|\d+e[+-]?\d+|inf|nan)$")
_INT = re.compile(r"^-?\d+$")
_SEEN = re.compile(r" = (-?\d+)\b")
"""The values in `x.size(0) = 12, n = 3`."""


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


def _size(changed: ChangedValue, settings: Settings) -> Advised:
    tensor, index = changed.subject, changed.index
    if {changed.expected, changed.seen} & {"0", "1"}:
        if changed.made:
            return (
                f"Pad the dimension before {_the_point(changed)}: torch compiles sizes 0 and 1 "
                "separately, and a mark before the call does not reach what is computed"
            )
        return Advice(
            text="If the code works for any size, do it before the first call; else pad the "
            "dimension: torch compiles sizes 0 and 1 separately",
            code=f"torch._dynamo.decorators.mark_unbacked({tensor}, {index})",
        )
    if changed.made:
        text = f"A mark before the call does not reach {tensor}, which the model computes in Python"
        if changed.resumed:
            text = f"Or remove the graph break: {tensor} is created inside the model, so "
            text += "mark_dynamic cannot reach it"
        return Advice(text=text, code="torch.compile(model, dynamic=True)")
    if _MODULE_STATE.search(changed.source):
        return Advice(
            text="Or allocate it once at its maximum size: torch keeps the shapes of "
            "parameters and buffers static",
            code="torch._dynamo.config.force_parameter_static_shapes = False",
        )
    sizes = dict.fromkeys([(tensor, index), *changed.sizes])
    advice = [
        Advice(
            text="Do it before the first call, or compile with dynamic=True; torch raises an error "
            "if the code needs one fixed size",
            code="\n".join(f"torch._dynamo.mark_dynamic({name}, {dim})" for name, dim in sizes),
            options=tuple(
                word
                for name, dim in sizes
                if name.isidentifier()
                for word in ("--mark-dynamic", f"{name}:{dim}")
            ),
        )
    ]
    if settings.get("automatic_dynamic_shapes"):
        advice.append(
            Advice(
                text="If nothing is done, torch tries a size that changed once as dynamic "
                "(automatic_dynamic_shapes), so that later sizes need no compile"
            )
        )
    else:
        advice.append(
            Advice(
                text="Every new size costs a compile while automatic dynamic shapes are off",
                code="torch._dynamo.config.automatic_dynamic_shapes = True",
            )
        )
    return tuple(advice)


def _rank(changed: ChangedValue, settings: Settings) -> Advised:
    tensor, expected, seen = changed.subject, changed.expected, changed.seen
    code = ""
    if _INT.match(expected) and _INT.match(seen):
        if int(seen) > int(expected) > 0:
            code = f"{tensor} = {tensor}.flatten(0, -{expected})"
        elif int(seen) == int(expected) - 1:
            code = f"{tensor} = {tensor}.unsqueeze(0)"
    return Advice(
        text=f"If it means the same, pass {expected} dimensions in every call: each number of "
        "dimensions is compiled separately",
        code=code,
    )


def _the_point(changed: ChangedValue, call: str = "the call") -> str:
    """Where the value can still be changed."""
    if not changed.made:
        return call
    return "the graph break" if changed.resumed else "the function that is compiled"


def _stride(changed: ChangedValue, settings: Settings) -> Advised:
    tensor = changed.subject
    return Advice(
        text=f"Do it before {_the_point(changed, 'every call')}: the same shape came in another "
        "memory layout (a transposed, sliced or channels-last view)",
        code=f"{tensor} = {tensor}.contiguous()",
    )


def _dtype(changed: ChangedValue, settings: Settings) -> Advised:
    tensor = changed.subject
    return Advice(
        text=f"If the other dtype is not intended, convert before {_the_point(changed)}; else "
        "each dtype costs a compile",
        code=f"{tensor} = {tensor}.to(torch.{changed.expected})",
    )


def _device(changed: ChangedValue, settings: Settings) -> Advised:
    tensor = changed.subject
    device = repr(changed.expected) if changed.expected.isalpha() else "device"
    return Advice(
        text=f"If the other device is not intended, move it before {_the_point(changed)}; else "
        "each device costs a compile",
        code=f"{tensor} = {tensor}.to({device})",
    )


def _requires_grad(changed: ChangedValue, settings: Settings) -> Advised:
    tensor = changed.subject
    if changed.made:
        return (
            f"Compute {tensor} from inputs of which the same need gradients in every call: the "
            "compiled graph computes them"
        )
    if changed.seen == "True":
        text = (
            "If its gradient is not needed, detach it before the call; where one block feeds the "
            "next, it is needed: request it in the first call, too"
        )
        code = f"{tensor} = {tensor}.detach()"
    else:
        text = "If its gradient is needed, request it in every call: the compiled graph computes it"
        code = f"{tensor}.requires_grad_()"
    return Advice(text=text, code=code)


def _value(changed: ChangedValue, settings: Settings) -> Advised:
    name = changed.name
    if name.endswith(".training"):
        return (
            "Call the model once in train() and once in eval() mode during warm-up: both "
            "are compiled once and kept"
        )
    argument = ARGUMENT.match(changed.source) is not None
    if _branches(changed):
        return (
            f"Call once with each value during warm-up, or keep {name} the same: the code "
            "branches or loops on it, so that each value is compiled separately"
        )
    if _FLOAT.match(changed.expected):
        return _float(changed, settings, argument)
    if _INT.match(changed.expected):
        if argument:
            it = "the value" if on_stack(changed) else name
            return Advice(
                text=f"If the code does not branch on {it}, this makes it a symbol from the "
                "first call; else each value costs a compile",
                code="torch.compile(model, dynamic=True)",
            )
        if changed.source.startswith("L['self']"):
            return Advice(
                text=f"Treat int attributes as dynamic, or keep {name} as a tensor: by default "
                "each value is compiled in",
                code="torch._dynamo.config.allow_unspec_int_on_nn_module = True",
            )
    return (
        f"Keep {name} the same, or call once with each value during warm-up: each value "
        "is compiled separately"
    )


def on_stack(changed: ChangedValue) -> bool:
    """Whether a graph break in the middle of an expression left the value on the stack."""
    return changed.resumed and STACK.match(changed.source) is not None


def _branches(changed: ChangedValue) -> bool:
    """Whether the line that needs the value decides with it, or loops so often."""
    line = changed.line.strip().replace('"', "'")
    decides = line.startswith(("if ", "elif ", "while ", "assert ")) and changed.name in line
    return decides or f"range({changed.name}" in line


def _as_tensor(name: str) -> tuple[str, ...]:
    return ("--as-tensor", name) if name.isidentifier() else ()


def _float(changed: ChangedValue, settings: Settings, argument: bool) -> Advised:
    name = changed.name
    tried = settings.get("automatic_dynamic_shapes") and not _specialised(settings)
    why = f"{'the first' if tried else 'each'} value is compiled in"
    if argument and changed.made and not on_stack(changed):
        advice = Advice(
            text=f"If the code only calculates with {name}, keep it in a tensor from before the "
            f"graph break on: {why}",
        )
    elif on_stack(changed):
        advice = Advice(
            text="It was made by the call before the graph break: keep it a tensor there, if the "
            f"code only calculates with it; {why}"
        )
    elif argument:
        advice = Advice(
            text=f"If the code only calculates with it, pass a tensor in every call: {why}",
            code=f"{name} = torch.tensor({name})",
            options=_as_tensor(name),
        )
    elif _LEARNING_RATE.match(changed.source):
        advice = Advice(
            text=f"Pass it to the optimizer as a tensor, which a scheduler then fills: {why}",
            code=f"lr=torch.tensor({changed.expected})",
        )
    elif code := _buffer(changed.source, changed.expected):
        advice = Advice(
            text="In __init__ of its module, instead of the plain number; change it with fill_(): "
            f"{why}",
            code=code,
        )
    else:
        advice = Advice(text=f"If the code only calculates with {name}, keep it in a tensor: {why}")
    if tried:
        later = "If nothing is done, torch tries a float that changed once as a symbol, so that "
        return (advice, Advice(text=later + "later values need no compile"))
    return advice


def _specialised(settings: Settings) -> bool:
    return settings.get("specialize_float") is not False


_MODULE_ATTRIBUTE = re.compile(
    r"^L\['self'\](?:\._modules\['[^']+'\])*(?:\.(?P<plain>\w+)|\.__dict__\['(?P<own>\w+)'\])$"
)

_OF_MODULE = re.compile(r"^L\['self'\]\.(?!(.*\.)?__dict__$)")
"""What a module keeps, which no caller passes; not its attributes themselves."""

_LEARNING_RATE = re.compile(r"^L\['self'\]\.param_groups\[\d+\]\['lr'\]$")
"""The learning rate of a `torch.optim.Optimizer`."""


def _buffer(source: str, value: str) -> str:
    """The number registered as a buffer of its module; "" if it is not a module attribute."""
    match = _MODULE_ATTRIBUTE.match(source)
    if match is None:
        return ""
    return f"self.register_buffer({(match['plain'] or match['own'])!r}, torch.tensor({value}))"


def _length(changed: ChangedValue, settings: Settings) -> Advised:
    if changed.passed == "*":
        return (
            "Pass the same arguments by position, and the same by name, in every call: "
            "each number of them is compiled separately"
        )
    if "DICT" in changed.kind or changed.described.startswith(("{", "dict")):
        return _keys_of_dict(changed, settings)
    if _MODULE_ATTRIBUTE.match(changed.source):
        return (
            f"Change {changed.subject} outside the compiled code, or use a tensor of "
            "fixed size instead: the length is a constant of the graph"
        )
    return (
        f"Replace the loop over {changed.subject} with one operation on a stacked tensor, "
        "or pad to a fixed length: loops are unrolled"
    )


def _keys_of_dict(changed: ChangedValue, settings: Settings) -> Advised:
    what = f"Give {changed.subject} the same keys"
    if changed.passed == "**":
        what = "Pass the same keyword arguments"
    elif _OF_MODULE.match(changed.source):
        return (
            f"Fill {changed.subject} before the first compiled call, in __init__ or by a call in "
            "eager: each set of its keys is compiled separately"
        )
    return f"{what}, in the same order, in every call: each set of them is compiled separately"


def _identity(changed: ChangedValue, settings: Settings) -> Advised:
    name = changed.name
    if changed.wrapped:
        return (
            Advice(
                text=f"Call once with each {name} during warm-up, or remove the graph break that "
                "keeps torch from inlining the call: a decorator's wrapper is compiled for each "
                "function that it wraps"
            ),
        )
    if changed.seen.removeprefix("another ").startswith("function "):
        return (
            f"Pass the same function as {name} in every call, or call once with each "
            "during warm-up: each one is compiled separately"
        )
    if changed.seen.startswith("another "):
        return (
            f"If each call creates a new {name}, create it once and reuse it: it is "
            "compared by identity, and another object of the same kind was passed"
        )
    return f"Use the same object as {name} in every call: it is compared by identity"


def _type(changed: ChangedValue, settings: Settings) -> Advised:
    name = changed.subject
    if changed.expected == "a tensor" and changed.seen in ("int", "float", "bool"):
        return Advice(
            text="If the code only calculates with it, pass a tensor in every call",
            code=f"{name} = torch.tensor({name})",
            options=_as_tensor(name),
        )
    if {changed.expected, changed.seen} == {"tuple", "list"}:
        return Advice(
            text="Do it before every call: a list and a tuple are compiled separately, and so "
            "is each length",
            code=f"{name} = {changed.expected}({name})",
        )
    return f"Give {name} one type in every call, or call once with each during warm-up"


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


def _state(changed: ChangedValue, settings: Settings) -> Advised:
    names = [name for name in _STATES if name in changed.name]
    return tuple(Advice(text=_STATES[name]) for name in names) or (
        Advice(text="Set torch's global settings once, at startup: one changed between the calls"),
    )


def _shape(changed: ChangedValue, settings: Settings) -> Advised:
    condition = changed.guard
    if changed.by_chance:
        return Advice(
            text="Or make the first call with unequal sizes: torch takes dynamic sizes for one "
            "that are equal in the call that it compiles",
            code="torch.fx.experimental._config.use_duck_shape = False",
        )
    bounded = re.match(r"^[12] (<=|<) ", condition) or re.search(r"(!= [01]|> 1)$", condition)
    sizes = _SEEN.findall(changed.seen)
    if bounded and (not sizes or {"0", "1"} & set(sizes)):
        return (
            "Pad the dimension, or use torch._dynamo.decorators.mark_unbacked if the code "
            "works for any size: torch compiles sizes 0 and 1 separately"
        )
    return (
        f"Keep to sizes with {condition}, or rewrite the line that compares them: the "
        "compiled code is valid only for those"
    )


def _attribute(changed: ChangedValue, settings: Settings) -> Advised:
    return (
        f"Set the attribute before the first call, in __init__ say: the code asks {changed.name}, "
        "and each case is compiled separately"
    )


def _deallocated(changed: ChangedValue, settings: Settings) -> Advised:
    if on_stack(changed):
        return (
            "Compute what breaks the graph on a line of its own before this one: in the middle of "
            "a call, it leaves a new bound method for the resumed code each time"
        )
    return (
        "Keep the model or function alive and reuse it: the object that owned the compiled code "
        "is gone, for example because each call creates a new one"
    )


RULES: dict[str, AdviceRule | str] = {
    "size": _size,
    "rank": _rank,
    "stride": _stride,
    "dtype": _dtype,
    "device": _device,
    "requires_grad": _requires_grad,
    "dispatch key set": (
        "Create the tensor the same way in each call: under torch.inference_mode() or a "
        "functional transform it gets other dispatch keys"
    ),
    "value": _value,
    "length": _length,
    "keys": _keys_of_dict,
    "identity": _identity,
    "type": _type,
    "state": _state,
    "shape": _shape,
    "alias": (
        "Pass a copy (`.clone()`) instead of the same tensor twice, or pass it twice in "
        "every call: the two cases are compiled separately"
    ),
    "marking": "Mark the tensor dynamic before the first call: it was marked later",
    "backend": (
        "Compile once and keep the result: torch.compile was called again with another "
        "backend for the same function"
    ),
    "attribute": _attribute,
    "deallocated": _deallocated,
}
"""Rules by `GuardFailure.what`; a text is the advice in every such case."""
