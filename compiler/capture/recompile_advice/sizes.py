"""Sizes that changed, and conditions on them."""

from __future__ import annotations

import re

from tcw.compiler.capture.advice.broken import Advised
from tcw.compiler.capture.recompile_advice import uses
from tcw.compiler.capture.recompile_advice.at_call import compile_dynamic, do_before, pass_instead
from tcw.compiler.capture.recompile_advice.changed import ChangedValue, Settings
from tcw.compiler.trace.records import Advice

_MODULE_STATE = re.compile(r"\._(parameters|buffers)\[")
_SEEN = re.compile(r" = (-?\d+)\b")
"""The values in `x.size(0) = 12, n = 3`."""
_BASE = re.compile(r"(?P<name>[A-Za-z_]\w*)\._base\b")
_STATIC_PARAMETERS = "torch._dynamo.config.force_parameter_static_shapes = False"


def size(changed: ChangedValue, settings: Settings) -> Advised:
    if {changed.expected, changed.seen} & {"0", "1"}:
        return _zero_or_one(changed)
    if changed.made:
        text = f"A mark before the call does not reach {changed.subject}, which the model computes"
        text += " in Python"
        if changed.resumed:
            text = f"Or remove the graph break: {changed.subject} is created inside the model, so "
            text += "mark_dynamic cannot reach it"
        return compile_dynamic(text)
    if changed.facts.parameter:
        return Advice(
            text="Torch keeps the shapes of parameters static, even where they are marked: let it "
            "make them dynamic",
            code=_STATIC_PARAMETERS,
        )
    if _MODULE_STATE.search(changed.source):
        return Advice(
            text="Or allocate it once at its maximum size: torch keeps the shapes of "
            "parameters and buffers static",
            code=_STATIC_PARAMETERS,
        )
    if uses.loops_on(changed) is not None:
        return (
            f"Replace the loop over {changed.name} with one operation on the whole tensor: it is "
            "unrolled, so that each size is compiled separately, dynamic or not"
        )
    if uses.equals_on(changed) is not None:
        return (
            Advice(
                text=f"Remove the branch on {changed.name}, or move it out of the compiled code: "
                "a size for which it holds is compiled separately"
            ),
            _marked(changed, "maybe_mark_dynamic", "Mark what may vary: torch makes it dynamic "
                    "where the code allows, and raises no error where not"),
        )  # fmt: skip
    if settings.get("assume_static_by_default") is False or changed.facts.marked:
        return f"Find what needs one value of {changed.name}, although it may vary, and rewrite it"
    return (*_dynamic(changed), *_automatic(settings))


def _zero_or_one(changed: ChangedValue) -> Advised:
    if changed.made:
        where = "the graph break" if changed.resumed else "the function that is compiled"
        return (
            f"Pad the dimension before {where}: torch compiles sizes 0 and 1 "
            "separately, and a mark before the call does not reach what is computed"
        )
    expected = Advice(
        text="One compile for size 1 (as in decoding after the prompt) and one for larger sizes is "
        "expected: torch compiles sizes 0 and 1 separately"
    )
    dynamic = compile_dynamic("If further sizes change, too: they need no compile of their own")
    if "." in changed.subject:
        return dynamic, expected
    unbacked = do_before(
        "If the code works for any size, do it before the first call; else pad the "
        "dimension: torch compiles sizes 0 and 1 separately",
        [f"torch._dynamo.decorators.mark_unbacked({changed.subject}, {changed.index})"],
    )
    if changed.call is not None and changed.function is None:
        # a library's function asks its sizes all over: a size without a value fails there
        return dynamic, expected, unbacked
    return unbacked, dynamic, expected


def _dynamic(changed: ChangedValue) -> tuple[Advice, ...]:
    marks = _marked(
        changed,
        "mark_dynamic",
        "Do it before the first call, or compile with dynamic=True; torch raises an error "
        "if the code needs one fixed size",
    )
    dynamic = compile_dynamic("Every size is a symbol from the first call on")
    # inside an object, what is marked has to exist before the first call, and its like as well
    return (dynamic,) if "." in changed.subject else (marks, dynamic)


def _marked(changed: ChangedValue, mark: str, text: str) -> Advice:
    sizes = dict.fromkeys([(changed.subject, changed.index), *changed.sizes])
    return do_before(
        text,
        [f"torch._dynamo.{mark}({name}, {dim})" for name, dim in sizes],
        options=tuple(
            word
            for name, dim in sizes
            if name.isidentifier() and mark == "mark_dynamic"
            for word in ("--mark-dynamic", f"{name}:{dim}")
        ),
    )


def _automatic(settings: Settings) -> tuple[Advice, ...]:
    if settings.get("automatic_dynamic_shapes"):
        return (
            Advice(
                text="If nothing is done, torch tries a size that changed once as dynamic "
                "(automatic_dynamic_shapes), so that later sizes need no compile"
            ),
        )
    return (
        Advice(
            text="Every new size costs a compile while automatic dynamic shapes are off",
            code="torch._dynamo.config.automatic_dynamic_shapes = True",
        ),
    )


def shape(changed: ChangedValue, settings: Settings) -> Advised:
    """A condition between symbolic sizes."""
    base = _BASE.search(changed.guard)
    if base is not None:
        from_view = ChangedValue(changed.what, subject=base["name"], made=changed.made)
        return pass_instead(
            from_view,
            f"Pass a copy: {base['name']} is a view, and torch ties its sizes to those of the "
            "tensor that it is a view of",
            "{}.clone()",
        )
    if changed.by_chance:
        return Advice(
            text="Or make the first call with unequal sizes: torch takes dynamic sizes for one "
            "that are equal in the call that it compiles",
            code="torch.fx.experimental._config.use_duck_shape = False",
        )
    bounded = re.match(r"^[12] (<=|<) ", changed.guard) or re.search(
        r"(!= [01]|> 1)$", changed.guard
    )
    sizes = _SEEN.findall(changed.seen)
    if bounded and (not sizes or {"0", "1"} & set(sizes)):
        return (
            "Pad the dimension, or use torch._dynamo.decorators.mark_unbacked if the code "
            "works for any size: torch compiles sizes 0 and 1 separately"
        )
    statement = changed.statement
    if statement is not None and uses.has_range(statement):
        return (
            "Replace the loop with one operation on the whole tensor: it is unrolled, so that each "
            "number of iterations is compiled separately"
        )
    return (
        f"Keep to sizes with {changed.guard}, or rewrite the line that compares them: the "
        "compiled code is valid only for those"
    )
