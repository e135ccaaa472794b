"""Runs predicted wrappers on CPU tensors, each Triton kernel in Triton's interpreter.

    TRITON_INTERPRET=1 python interpreted.py

Every line of the standard input names a job, a file of `torch.save`: `code`, `inputs`, and
`configurations` by kernel name as `KernelBinary` has them. The outputs are saved to JOB.out, and
`done` is printed.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers, triton_heuristics
from triton.runtime import interpreter

KINDS = ("pointwise", "reduction", "persistent_reduction")


class Kernel:
    """One kernel, launched over the grid that its heuristic would use."""

    def __init__(self, name: str, source: str, configuration: str, folder: Path) -> None:
        found = re.findall(r"(\w+)=(\d+)", configuration)
        self.blocks = {key: int(value) for key, value in found if key.endswith("BLOCK")}
        source = re.sub(r"import libdevice, ", "import ", source)
        file = folder / f"{name}.py"
        file.write_text(source)
        # The interpreter cannot call NVIDIA's library.
        module: dict[str, Any] = {"__file__": str(file), "libdevice": tl.math}
        exec(compile(source, str(file), "exec"), module)
        self.function, self.meta = module[name]

    def run(self, *args: Any, stream: object = None) -> None:
        constants = {**self.meta["constants"], **self.blocks}
        names = [each for each, kind in self.meta["signature"].items() if kind != "constexpr"]
        given = {**dict(zip(names, args, strict=True)), **constants}
        grid = tuple(
            triton.cdiv(given.get(f"{axis}numel", 1), self.blocks.get(f"{axis.upper()}BLOCK", 1))
            for axis in "xyz"
        )
        self.function[grid](**given)


def captured(*args: Any, triton_meta: Any, **kwargs: Any) -> Any:
    """Replaces a heuristic: returns the function itself and the description of its arguments."""
    return lambda function: (function, triton_meta)


def indexed(patch_tensor: Any) -> Any:
    """Triton 3.6's interpreter takes a number from an array of one, which NumPy 2.4 refuses."""

    def patched(tensor: Any, scope: Any) -> None:
        patch_tensor(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.squeeze()))

    return patched


def main() -> None:
    triton_helpers.set_driver_to_gpu = lambda: None
    interpreter._patch_lang_tensor = indexed(interpreter._patch_lang_tensor)
    for kind in KINDS:
        setattr(triton_heuristics, kind, captured)
    for line in sys.stdin:
        run(Path(line.rstrip("\n")))
        print("done", flush=True)


def run(job: Path) -> None:
    task = torch.load(job)
    folder = Path(tempfile.mkdtemp(dir=job.parent))

    class Compile:
        def triton(self, name: str, source: str, device_str: str = "") -> Kernel:
            return Kernel(name, source, task["configurations"][name], folder)

        def wait(self, scope: object) -> None: ...

    code = on_the_cpu(task["code"])
    wrapper: dict[str, Any] = {"__name__": "wrapper", "AsyncCompile": Compile}
    exec(compile(code, "wrapper.py", "exec"), wrapper)
    torch.save(wrapper["call"](list(task["inputs"])), f"{job}.out")


def on_the_cpu(code: str) -> str:
    """The wrapper with everything specific to its device replaced by what a CPU build has."""
    code = re.sub(r"^from .* import AsyncCompile$", "", code, flags=re.MULTILINE)
    code = re.sub(r"^from torch._C import .*$", "", code, flags=re.MULTILINE)
    code = re.sub(r"^(empty_strided_cuda = .*)_cuda$", r"\1_cpu", code, flags=re.MULTILINE)
    code = re.sub(r"(= )?get_raw_stream\(0\)", r"\g<1>None", code)
    code = code.replace("torch.cuda._DeviceGuard(0)", "__import__('contextlib').nullcontext()")
    return code.replace("torch.cuda.set_device(0)", "pass")


if __name__ == "__main__":
    main()
