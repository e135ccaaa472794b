"""Advice that changes what the compiled function is given, or how it is compiled."""

from __future__ import annotations

from collections.abc import Sequence

from tcw.compiler.capture.recompile_advice.changed import ChangedValue
from tcw.compiler.trace.records import Advice

DYNAMIC = "torch.compile(model, dynamic=True)"


def pass_instead(
    changed: ChangedValue, text: str, form: str, options: tuple[str, ...] = ()
) -> Advice:
    """Pass `form` of the value, such as `{}.contiguous()`, in every call; above a graph break if
    the value is made before that."""
    name = changed.subject or changed.name
    code = f"{name} = {form.format(name)}"
    if not changed.made:
        return Advice(text=text, code=code, options=options, place="call")
    if changed.resumes is None or changed.on_stack:
        return Advice(text=text, code=code)
    source, line = changed.resumes
    return Advice(text=text, code=code, changes=(source.above(line, code),))


def do_before(text: str, lines: Sequence[str], options: tuple[str, ...] = ()) -> Advice:
    """Run lines before each call."""
    return Advice(text=text, code="\n".join(lines), options=options, place="call")


def compile_dynamic(text: str) -> Advice:
    return Advice(text=text, code=DYNAMIC, options=("--dynamic",))
