"""Writes compiler/trace/redaction/public_words.txt: the names of Python and torch, which a redacted
trace keeps.

    python docs/make_public_words.py
"""

from __future__ import annotations

import builtins
import inspect
import keyword
import re
import sys
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional
import torch.optim
from torch._dynamo import variables

FILE = Path(__file__).parents[1] / "compiler/trace/redaction/public_words.txt"
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
OWNERS: tuple[Any, ...] = (
    builtins, object, str, int, float, list, dict, tuple, set, torch, torch.Tensor, torch.nn,
    torch.nn.Module(), torch.nn.functional, torch.nn.init, torch.optim, torch.compiler,
    torch.library, torch._dynamo, torch.fx, torch.fx.Node, torch.autograd, torch.cuda,
    torch.special, torch.linalg, torch.fft, variables,
)  # fmt: skip
EXTRA = """
    aten prims prim inductor aot_autograd functorch default out L G self args kwargs forward model
    example_inputs f16 f32 f64 bf16 i32 i64 u8 b8 numpy np nn F math buffers
"""


def main() -> None:
    words = {*keyword.kwlist, *keyword.softkwlist, *sys.stdlib_module_names, *WORD.findall(EXTRA)}
    for owner in OWNERS:
        for name in dir(owner):
            words.add(name)
            words |= _parameters(getattr(owner, name, None))
    for name in torch._C._dispatch_get_all_op_names():
        words |= set(WORD.findall(name))
    words |= {word for name in sys.modules if name.startswith("torch.") for word in name.split(".")}
    FILE.write_text("\n".join(sorted(word for word in words if len(word) > 1)) + "\n")


def _parameters(value: object) -> set[str]:
    try:
        return set(inspect.signature(value).parameters)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return set()


if __name__ == "__main__":
    main()
