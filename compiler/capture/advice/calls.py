"""Calls that Dynamo may not or cannot follow."""

from __future__ import annotations

import re

from compiler.capture.advice.broken import Broken
from compiler.trace.records import Advice

_FUNCTION = re.compile(r"<(?:bound method|function) ([\w.<>]+)")
_BUILTIN = re.compile(r"^builtin (\w+)\b")
_SKIPPED = re.compile(r"^module: (?P<module>[\w.]+), qualname: (?P<name>[\w.]+), .*C extension")

PYTHON_ITSELF = ("exec", "eval", "compile", "globals", "locals", "vars", "__import__", "breakpoint")


def advise(broken: Broken) -> tuple[Advice, ...]:
    if "torch.compiler.disable()" in broken.type:
        return (_disabled(broken),)
    if "`torch._dynamo.graph_break()`" in broken.type:
        return (Advice(text="Remove the call: the code asks for this break"),)
    if broken.type == "Attempt to trace generator":
        return (
            Advice(
                text="A generator is not compiled by itself: compile a plain function that runs it"
                " to its end"
            ),
        )
    if broken.type == "Unsupported context manager":
        return (Advice(text="Move the `with` outside the compiled function"),)
    builtin = _BUILTIN.match(broken.context)
    if builtin and builtin[1] in PYTHON_ITSELF:
        return (
            Advice(
                text=f"{builtin[1]}() works on Python itself, not on tensors: do it before the"
                " compiled function is called"
            ),
        )
    return _extension(broken)


def _disabled(broken: Broken) -> Advice:
    match = _FUNCTION.search(broken.context)
    name = match[1] if match else "the function"
    return Advice(
        text=f"{name} is marked with torch.compiler.disable: remove the mark, or call it outside"
        " the compiled function"
    )


def _extension(broken: Broken) -> tuple[Advice, ...]:
    """A C or C++ function of an installed package: Dynamo sees no Python in it."""
    match = _SKIPPED.match(broken.context)
    if match is None or match["module"].split(".")[0] in ("torch", "time", "_warnings", "builtins"):
        return ()
    name = match["name"].rpartition(".")[2]
    return (
        Advice(
            text=f"{match['module']}.{match['name']} is compiled code that Dynamo cannot see into:"
            " make it a custom operator, with its types",
            code=f'@torch.library.custom_op("mine::{name}", mutates_args=())',
        ),
    )
