"""Advice that changes what the compiled function is given, wherever its caller is."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from tcw.compiler.capture.advice.user_source import by_changes, compiled_with
from tcw.compiler.capture.recompile_advice.changed import ChangedValue
from tcw.compiler.trace.records import Advice

DYNAMIC = "torch.compile(model, dynamic=True)"


def pass_instead(
    changed: ChangedValue, text: str, form: str, options: tuple[str, ...] = ()
) -> Advice:
    """Pass `form` of the value, such as `{}.contiguous()`: before each call if tcw makes it, in
    the call if the program does, and above a graph break if the value is made before that."""
    name = changed.subject or changed.name
    code = f"{name} = {form.format(name)}"
    if changed.made and changed.resumes is not None and not changed.on_stack:
        source, line = changed.resumes
        return Advice(text=text, code=code, changes=(source.above(line, code),))
    if changed.made and changed.call is None:
        return Advice(text=text, code=code)
    if changed.call is None:
        return Advice(text=text, code=code, options=options, place="call")
    if name != changed.root:
        line_above = changed.call.above(changed.root, f"{{}}{name[len(changed.root) :]}")
        if line_above is None:
            return Advice(text=text, code=code)
        target = line_above.text
        word = target.strip()
        change = structs.replace(
            line_above, text=target.replace(word, f"{word} = {form.format(word)}")
        )
        return by_changes(text, (change,))
    return changed.call.wrapped(text, name, form) or Advice(text=text, code=code)


def do_before(
    changed: ChangedValue,
    text: str,
    lines: Sequence[tuple[str, str]],
    options: tuple[str, ...] = (),
) -> Advice:
    """Run lines before each call, each with the name of its value:
    `torch._dynamo.mark_dynamic({}, 0)` and `x`."""
    code = "\n".join(form.format(name) for form, name in lines)
    if changed.call is None:
        return Advice(text=text, code=code, options=options, place="call")
    changes = [changed.call.above(name, form) for form, name in lines]
    whole = [change for change in changes if change is not None]
    if len(whole) != len(changes) or not whole:
        return Advice(text=text, code=code)
    joined = structs.replace(whole[0], text="\n".join(change.text for change in whole))
    return by_changes(text, (joined,))


def compile_dynamic(changed: ChangedValue, text: str) -> Advice:
    """Compile with dynamic=True; in a program, where it compiles."""
    changes = compiled_with(changed.call.source, "dynamic", "True") if changed.call else ()
    if changes:
        return by_changes(text, changes)
    return Advice(text=text, code=DYNAMIC, options=("--dynamic",))
