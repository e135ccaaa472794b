"""What to do about a recompile, by what changed. Says nothing where nothing helps.

Every rule is a function of one `Changed`; `RULES` maps what changed to its rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from compiler.trace.records import Advice


@dataclass(frozen=True)
class Changed:
    """One guard that failed, as `failed_guard.take_apart` and the recorded guards tell it."""

    what: str
    kind: str = ""
    source: str = ""
    """torch's expression."""
    subject: str = ""
    """The same in the terms of whoever calls the frame."""
    name: str = ""
    """What was compared: a size or setting of the subject, in the same terms."""
    expected: str = ""
    seen: str = ""
    index: int | None = None
    guard: str = ""
    """The condition, readable."""
    described: str = ""
    """The guarded value of the first compile, described."""
    resumed: bool = False
    """The frame goes on after a graph break: its locals are no arguments of the caller."""


Settings = Mapping[str, object]
Rule = Callable[[Changed, Settings], tuple[Advice, ...]]

_ARGUMENT = re.compile(r"^L\['(?!self'\])[^']+'\](\[[^\]]+\])*$")
_MODULE_STATE = re.compile(r"\._(parameters|buffers)\[")
_FLOAT = re.compile(r"^-?(\d+\.\d*(e[+-]?\d+)?|\d+e[+-]?\d+|inf|nan)$")
_INT = re.compile(r"^-?\d+$")


def advise(changed: Sequence[Changed], settings: Settings) -> tuple[Advice, ...]:
    """Advice for a recompile; `changed` has one item per cache entry, the latest used first.

    The latest used entry decides: against it the call differs from the one before.
    """
    if not changed:
        return ()
    decisive = changed[0]
    rule = RULES.get(decisive.what)
    if decisive.what == "size":
        decisive = _widest(changed)
    return rule(decisive, settings) if rule is not None else ()


def _widest(changed: Sequence[Changed]) -> Changed:
    """Of the entries that failed on the first one's size, one that a symbolic size would serve."""
    for item in changed:
        same = (item.what, item.source, item.index) == (
            changed[0].what,
            changed[0].source,
            changed[0].index,
        )
        if same and not {item.expected, item.seen} & {"0", "1"}:
            return item
    return changed[0]


def _size(changed: Changed, settings: Settings) -> tuple[Advice, ...]:
    tensor, index = changed.subject, changed.index
    if {changed.expected, changed.seen} & {"0", "1"}:
        return (
            Advice(
                text="torch compiles sizes 0 and 1 apart from all others; pad the dimension, or "
                "mark it unbacked before the first call if the code works for any size",
                code=f"torch._dynamo.decorators.mark_unbacked({tensor}, {index})",
            ),
        )
    if changed.resumed:
        return (
            Advice(
                text=f"{tensor} was made before a graph break, so it cannot be marked by the "
                "caller; compile with dynamic=True, or remove the break",
                code="torch.compile(model, dynamic=True)",
            ),
        )
    if _MODULE_STATE.search(changed.source):
        return (
            Advice(
                text="torch keeps the shapes of parameters and buffers static; allocate it once "
                "at its greatest size, or let their shapes be dynamic",
                code="torch._dynamo.config.force_parameter_static_shapes = False",
            ),
        )
    advice = [
        Advice(
            text="mark the dimension dynamic before the first call, or compile with dynamic=True",
            code=f"torch._dynamo.mark_dynamic({tensor}, {index})",
        )
    ]
    if settings.get("automatic_dynamic_shapes"):
        advice.append(
            Advice(
                text="if nothing is done, torch tries a size that changed once as dynamic "
                "(automatic_dynamic_shapes), so that later sizes need no compile"
            )
        )
    else:
        advice.append(
            Advice(
                text="automatic dynamic shapes are off: every new size is one more compile",
                code="torch._dynamo.config.automatic_dynamic_shapes = True",
            )
        )
    return tuple(advice)


def _rank(changed: Changed, settings: Settings) -> tuple[Advice, ...]:
    tensor = changed.subject
    return (
        Advice(
            text="another number of dimensions is another program; bring the tensor to one rank "
            f"before the call ({changed.expected} dimensions were compiled)",
            code=f"{tensor} = {tensor}.flatten(0, -{changed.expected})"
            if _more(changed.seen, changed.expected)
            else f"{tensor} = {tensor}.unsqueeze(0)",
        ),
    )


def _more(seen: str, expected: str) -> bool:
    return _INT.match(seen) is not None and _INT.match(expected) is not None and (
        int(seen) > int(expected) > 0
    )  # fmt: skip


def _stride(changed: Changed, settings: Settings) -> tuple[Advice, ...]:
    tensor = changed.subject
    return (
        Advice(
            text="the same shape came with another memory layout (a transposed, sliced or "
            "channels-last view); give it one layout before the call",
            code=f"{tensor} = {tensor}.contiguous()",
        ),
    )


def _dtype(changed: Changed, settings: Settings) -> tuple[Advice, ...]:
    tensor = changed.subject
    return (
        Advice(
            text="convert before the call if the other dtype is not meant; else it is one "
            "compile for each dtype",
            code=f"{tensor} = {tensor}.to(torch.{changed.expected})",
        ),
    )


def _device(changed: Changed, settings: Settings) -> tuple[Advice, ...]:
    tensor = changed.subject
    return (
        Advice(
            text=f"{tensor} came from another device; move it before the call if that is not "
            "meant, else it is one compile for each device",
            code=f"{tensor} = {tensor}.to(device)",
        ),
    )


def _requires_grad(changed: Changed, settings: Settings) -> tuple[Advice, ...]:
    tensor = changed.subject
    if changed.seen == "True":
        text = "detach it before the call if no gradient is wanted for it"
        code = f"{tensor} = {tensor}.detach()"
    else:
        text = "the compiled graph computes its gradient; ask for it in every call"
        code = f"{tensor}.requires_grad_()"
    return (Advice(text=text, code=code),)


def _keys(changed: Changed, settings: Settings) -> tuple[Advice, ...]:
    return (
        Advice(
            text="the tensor is of another kind to torch's dispatcher: it was made under "
            "torch.inference_mode() or a functional transform in one call only; make it the "
            "same way in each"
        ),
    )


def _value(changed: Changed, settings: Settings) -> tuple[Advice, ...]:
    name = changed.name
    if name.endswith(".training"):
        return (
            Advice(
                text="train() or eval() was called between the calls; each mode is compiled once "
                "and kept, so call both once while warming up"
            ),
        )
    argument = _ARGUMENT.match(changed.source) is not None
    if _FLOAT.match(changed.expected):
        if argument:
            return (
                Advice(
                    text=f"pass {name} as a tensor: a Python float is a constant of the graph",
                    code=f"{name} = torch.tensor({name})",
                ),
            )
        return (
            Advice(
                text=f"keep {name} as a tensor (on a module: a buffer): a Python float is a "
                "constant of the graph",
                code=_buffer(name) if "." in name else "",
            ),
        )
    if _INT.match(changed.expected):
        if argument:
            return (
                Advice(
                    text=f"compile with dynamic=True, so that {name} is a symbol from the first "
                    "call, or pass it as a tensor",
                    code="torch.compile(model, dynamic=True)",
                ),
            )
        return (
            Advice(
                text="torch takes integer attributes of a module as constants; let them be "
                f"dynamic, or keep {name} as a tensor",
                code="torch._dynamo.config.allow_unspec_int_on_nn_module = True",
            ),
        )
    return (
        Advice(
            text=f"each value of {name} is a program of its own; fix it, or call once with each "
            "value while warming up"
        ),
    )


def _buffer(name: str) -> str:
    owner, _, attribute = name.rpartition(".")
    if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*|\[\d+\])*", owner) or "__" in name:
        return ""
    if not attribute.isidentifier():
        return ""
    return f"{owner}.register_buffer({attribute!r}, torch.tensor({name}))"


def _length(changed: Changed, settings: Settings) -> tuple[Advice, ...]:
    if "DICT" in changed.kind or changed.described.startswith(("{", "dict")):
        return _keys_of_dict(changed, settings)
    name = changed.subject
    return (
        Advice(
            text=f"a loop over {name} is unrolled for its length; pass one stacked tensor, or pad "
            "to a fixed length",
            code=f"{name} = torch.stack(tuple({name}))" if _ARGUMENT.match(changed.source) else "",
        ),
    )


def _keys_of_dict(changed: Changed, settings: Settings) -> tuple[Advice, ...]:
    return (
        Advice(
            text=f"each set of keys of {changed.subject} is a program of its own; give it "
            "the same keys in the same order in each call"
        ),
    )


def _identity(changed: Changed, settings: Settings) -> tuple[Advice, ...]:
    name = changed.name
    if changed.seen.removeprefix("another ").startswith("function "):
        return (
            Advice(
                text=f"each function passed as {name} is a program of its own; pass the same one, "
                "or call once with each while warming up"
            ),
        )
    if changed.seen.startswith("another "):
        return (
            Advice(
                text=f"{name} is compared by identity and was another object of the same kind, so "
                "it is probably made anew for each call; make it once and pass it again"
            ),
        )
    return (
        Advice(
            text=f"{name} is compared by identity, not by value; pass the same object in each call"
        ),
    )


def _type(changed: Changed, settings: Settings) -> tuple[Advice, ...]:
    name = changed.subject
    if changed.expected == "a tensor" and changed.seen in ("int", "float", "bool"):
        return (
            Advice(
                text=f"pass {name} as a tensor in every call",
                code=f"{name} = torch.tensor({name})",
            ),
        )
    return (
        Advice(
            text=f"{name} came with another type; give it one type, or call once with each "
            "while warming up"
        ),
    )


_STATES = {
    "grad mode": "a call under torch.no_grad() and one without it are compiled apart; make all "
    "calls in one mode, or warm up both",
    "autocast": "torch.autocast was on in one of the calls only; make all calls inside it, "
    "or warm up both",
    "num threads": "torch.set_num_threads() was called between the calls; call it once, at start",
    "deterministic algorithms": "torch.use_deterministic_algorithms() was called between the "
    "calls; call it once, at start",
    "default dtype": "torch.set_default_dtype() was called between the calls; call it once, at "
    "start",
    "torch function": "a torch function mode (such as `with torch.device(...)` or "
    "torch.set_default_device) was active in one of the calls only",
    "saved-tensor hooks": "hooks on saved tensors were active in one of the calls only",
    "default device": "torch.set_default_device() was called between the calls; call it once, at "
    "start",
}


def _state(changed: Changed, settings: Settings) -> tuple[Advice, ...]:
    names = [name for name in _STATES if name in changed.name]
    return tuple(Advice(text=_STATES[name]) for name in names) or (
        Advice(text="a global setting of torch changed between the calls; set it once, at start"),
    )


def _shape(changed: Changed, settings: Settings) -> tuple[Advice, ...]:
    condition = changed.guard
    if re.match(r"^[12] (<=|<) ", condition) or re.search(r"(!= [01]|> 1)$", condition):
        return (
            Advice(
                text="torch compiles sizes 0 and 1 apart from all others; pad the dimension, or "
                "use torch._dynamo.decorators.mark_unbacked"
            ),
        )
    return (
        Advice(
            text=f"the code holds only where {condition}; keep sizes so, or rewrite the line "
            "that compares them"
        ),
    )


def _alias(changed: Changed, settings: Settings) -> tuple[Advice, ...]:
    return (
        Advice(
            text="the same tensor was passed twice where the other call had different ones; pass "
            "a copy (`.clone()`), or always pass it twice"
        ),
    )


def _marking(changed: Changed, settings: Settings) -> tuple[Advice, ...]:
    return (
        Advice(text="the tensor was marked dynamic after a first call: mark it before all calls"),
    )


def _backend(changed: Changed, settings: Settings) -> tuple[Advice, ...]:
    return (
        Advice(
            text="torch.compile was called again with another backend object for the same "
            "function; compile once and keep the result"
        ),
    )


def _deallocated(changed: Changed, settings: Settings) -> tuple[Advice, ...]:
    return (
        Advice(
            text="an object that the compiled code belongs to is gone (a model or function made "
            "anew for each call); keep it alive and use it again"
        ),
    )


RULES: dict[str, Rule] = {
    "size": _size,
    "rank": _rank,
    "stride": _stride,
    "dtype": _dtype,
    "device": _device,
    "requires_grad": _requires_grad,
    "dispatch key set": _keys,
    "value": _value,
    "length": _length,
    "keys": _keys_of_dict,
    "identity": _identity,
    "type": _type,
    "state": _state,
    "shape": _shape,
    "alias": _alias,
    "marking": _marking,
    "backend": _backend,
    "deallocated": _deallocated,
}
"""By `failed_guard.Failure.what`."""
