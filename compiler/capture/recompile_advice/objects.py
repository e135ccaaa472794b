"""Objects that are compared by identity or type, and attributes that come and go."""

from __future__ import annotations

from tcw.compiler.capture.advice.broken import Advised
from tcw.compiler.capture.recompile_advice.at_call import pass_instead
from tcw.compiler.capture.recompile_advice.changed import ChangedValue, Settings


def identity(changed: ChangedValue, settings: Settings) -> Advised:
    name = changed.name
    if changed.wrapped:
        return (
            f"Call once with each {name} during warm-up, or remove the graph break that "
            "keeps torch from inlining the call: a decorator's wrapper is compiled for each "
            "function that it wraps"
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


def type_of(changed: ChangedValue, settings: Settings) -> Advised:
    name = changed.subject
    if changed.expected == "a tensor" and changed.seen in ("int", "float", "bool"):
        return pass_instead(
            changed,
            "If the code only calculates with it, pass a tensor in every call",
            "torch.as_tensor({})",
            ("--as-tensor", name) if name.isidentifier() else (),
        )
    if {changed.expected, changed.seen} == {"tuple", "list"}:
        return pass_instead(
            changed,
            "Do it before every call: a list and a tuple are compiled separately, and so "
            "is each length",
            f"{changed.expected}({{}})",
        )
    return f"Give {name} one type in every call, or call once with each during warm-up"


def deallocated(changed: ChangedValue, settings: Settings) -> Advised:
    if changed.on_stack:
        return (
            "Compute what breaks the graph on a line of its own before this one: in the middle of "
            "a call, it leaves a new bound method for the resumed code each time"
        )
    return (
        "Keep the model or function alive and reuse it: the object that owned the compiled code "
        "is gone, for example because each call creates a new one"
    )
