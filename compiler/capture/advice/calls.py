"""Calls that Dynamo may not or cannot follow."""

from __future__ import annotations

import re
import sys

from tcw.compiler.capture.advice.broken import BUILTIN, SKIPPED, Advised, Broken
from tcw.compiler.capture.advice.user_source import user_source
from tcw.compiler.protocol.edits.edit import EditError
from tcw.compiler.protocol.edits.kinds import undisable
from tcw.compiler.trace.records import Advice, SourceChange

_FUNCTION = re.compile(r"<(?:bound method|function) ([\w.<>]+)")
_RANDOM = re.compile(r"^module: [\w.<> ]+, qualname: Random\.(?P<name>\w+)")

_DATA_PARALLEL = re.compile(
    r"\bDistributedDataParallel\._inside_ddp_forward\b|\(Logger\) set_runtime_stats_and_log\b"
)
"""What Dynamo stops at in torch/nn/parallel/distributed.py."""

_FUNCTION_ATTRIBUTE = re.compile(
    r"^setattr\(\w*FunctionVariable\(|^builtin setattr \[<class '[\w.]*FunctionVariable'>"
)
"""The attribute of a function is set, in torch's words: since 2.13, and in 2.12."""
_WRAPS = "functools.wraps"
"""torch 2.11's type of the break at the call that would set them."""

PYTHON_ITSELF = ("exec", "eval", "compile", "globals", "locals", "vars", "__import__", "breakpoint")


def advise(broken: Broken) -> Advised:
    if _DATA_PARALLEL.search(broken.context):
        return Advice(
            text="Compile the module before it is wrapped: Dynamo captures nothing inside of"
            " DistributedDataParallel's own forward",
            code="model = DistributedDataParallel(torch.compile(module))",
        )
    if "torch.compiler.disable()" in broken.type:
        return _disabled(broken)
    if "`torch._dynamo.graph_break()`" in broken.type:
        if broken.library or broken.inside:
            return (
                "Leave it: the library's own code requests this break, and only its authors can"
                " remove it"
            )
        return Advice(text="Remove the call: it requests this graph break", edit="drop")
    if broken.type == "Attempt to trace generator":
        return (
            "Compile a plain function that exhausts the generator: torch does not compile"
            " a generator by itself"
        )
    if broken.type == _WRAPS or _FUNCTION_ATTRIBUTE.match(broken.context):
        return (
            "Set attributes of functions, as functools.wraps does, before you compile; if"
            " a hook replaces itself in its first call, call it once before"
        )
    if broken.type == "Unsupported context manager":
        return "Move the `with` outside the compiled function"
    builtin = BUILTIN.match(broken.context)
    if builtin and builtin[1] in PYTHON_ITSELF:
        return (
            f"Call {builtin[1]}() outside the compiled function: it works on Python"
            " itself, not on tensors"
        )
    if builtin and "TensorVariable" in broken.context:
        return _builtin_on_tensor(builtin[1])
    if broken.type in ("repr() on tensor", "str() on tensor"):
        return _builtin_on_tensor(broken.type.partition("(")[0])
    if _RANDOM.match(broken.context):
        return (
            "Draw with torch inside the graph (from torch's seed, so the values differ),"
            " or pass the numbers in: Python draws them on the host"
        )
    return _extension(broken)


def _builtin_on_tensor(name: str) -> Advised:
    if name == "range":
        return (
            "Pass the number in as a Python int, or run a fixed number of iterations:"
            " range needs it on the host"
        )
    if name in ("str", "repr", "format", "ascii"):
        return (
            f"Build the string outside the compiled function: {name}() needs the tensor's"
            " values on the host"
        )
    return ()


def _disabled(broken: Broken) -> Advice:
    match = _FUNCTION.search(broken.context)
    name = match[1] if match else "the function"
    text = f"Remove torch.compiler.disable from {name}, or call it outside the compiled function"
    return Advice(text=text, changes=_enabled(broken, name))


def _enabled(broken: Broken, name: str) -> tuple[SourceChange, ...]:
    """The file without the decorator that disables the function, if it has it."""
    source = user_source(broken.file) if broken.file else None
    owner, _, method = name.rpartition(".")
    if source is None:
        return ()
    within = source.class_named(owner) if owner else source.tree
    function = source.method(within, method) if within is not None else None
    for decorator in function.decorator_list if function is not None else ():
        try:
            return source.edited(undisable(source.text, decorator.lineno))
        except EditError:
            continue
    return ()


def _extension(broken: Broken) -> Advised:
    """A C or C++ function of Python's own or of an installed package: no Python to trace."""
    match = SKIPPED.match(broken.context)
    compiled = "C extension" in broken.context or "C/C++ Python extension" in broken.explanation
    if match is None or not compiled:
        return ()
    top = match["module"].split(".")[0]
    if top == "torch":
        return ()
    if top in sys.stdlib_module_names:
        return (
            f"Call {match['name']} outside the compiled function and pass the result in:"
            " it runs on the host"
        )
    name = match["name"].rpartition(".")[2]
    return Advice(
        text="If it only takes and returns tensors and changes none, wrap it in a custom"
        " operator with annotated types: Dynamo cannot trace"
        f" {match['module']}.{match['name']}",
        code=f'@torch.library.custom_op("mine::{name}", mutates_args=())',
    )
