"""The Triton kernels of a generated wrapper, loaded as Inductor's own runtime loads them."""

from __future__ import annotations

import ast
import linecache
from dataclasses import dataclass
from typing import Any

from torch._inductor.runtime.triton_heuristics import CachingAutotuner

from tcw.compiler.trace.writer import text_hash


class NoKernel(Exception):
    """Generated code that is not a kernel as expected; the message says what it is."""


@dataclass(frozen=True)
class KernelSource:
    name: str
    """The generated function's name."""
    text: str
    """A self-contained module: imports, the heuristic's decorator, the function."""


def kernel_sources(wrapper: str) -> list[KernelSource]:
    """Kernels that the wrapper defines, `name = async_compile.triton('name', '''source''')`."""
    found = []
    for statement in ast.parse(wrapper).body:
        call = statement.value if isinstance(statement, ast.Assign) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        texts = [each.value for each in call.args if isinstance(each, ast.Constant)]
        if call.func.attr == "triton" and len(texts) >= 2:
            found.append(KernelSource(name=str(texts[0]), text=str(texts[1])))
    return found


def load(kernel: KernelSource) -> Any:
    """Run the kernel's module: its decorator chooses the configurations for the pretended device.

    Returns torch's `CachingAutotuner`. The source is only in `linecache`, where Triton's compiler
    finds it, so nothing is written to disk.
    """
    file = f"{kernel.name}.{text_hash(kernel.text)}.py"
    linecache.cache[file] = (len(kernel.text), None, kernel.text.splitlines(True), file)
    try:
        module: dict[str, Any] = {"__name__": kernel.name, "__file__": file}
        exec(compile(kernel.text, file, "exec"), module)
        loaded = module.get(kernel.name) or module.get("triton_")
        if not isinstance(loaded, CachingAutotuner):
            raise NoKernel(f"{kernel.name} is a {type(loaded).__name__}, not a kernel")
        # Triton reads the source again when it compiles; this makes it keep what it read.
        str(loaded.fn.src)
        return loaded
    finally:
        linecache.cache.pop(file, None)


def describe(configuration: Any, of: int) -> str:
    """`XBLOCK=1024 num_warps=4 num_stages=1`, and how many candidates a GPU would time."""
    parts = [f"{name}={value}" for name, value in configuration.kwargs.items()]
    parts += [f"num_warps={configuration.num_warps}", f"num_stages={configuration.num_stages}"]
    if of > 1:
        parts.append(f"(first of {of} that a GPU would time)")
    return " ".join(parts)
