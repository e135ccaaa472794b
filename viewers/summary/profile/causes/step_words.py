"""Words for steps and operations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from tcw.compiler.trace.commas import split_at_commas
from tcw.compiler.trace.records import CompiledStep, EagerOperation
from tcw.viewers.collected import grouped
from tcw.viewers.labels import kernel_label
from tcw.viewers.summary.profile.index import Index
from tcw.viewers.words import listed, plural

PRODUCTS = frozenset({
    "mm", "addmm", "bmm", "baddbmm", "linear", "matmul", "_int_mm", "_scaled_mm", "mkl_linear",
    "linear_pointwise", "_linear_pointwise", "_mkl_linear", "packed_linear",
})  # fmt: skip
_NAMESPACES = frozenset({"aten", "prims", "mkldnn", "mkl", "inductor", "extern_kernels"})


def bare(name: str) -> str:
    """`torch.ops.aten._softmax.default` and `extern_kernels.bmm` -> `_softmax`, `bmm`; of an
    operator of another library, as `torchvision.nms.default`, its name as well."""
    parts = name.removeprefix("torch.ops.").split(".")
    spaced = len(parts) > 2 or parts[0] in _NAMESPACES or name.startswith("torch.ops.")
    return parts[1] if spaced and len(parts) > 1 else parts[0]


def is_aten(name: str) -> bool:
    """Whether a library call is one of PyTorch's own operations."""
    parts = name.removeprefix("torch.ops.").split(".")
    return len(parts) < 2 or parts[0] in _NAMESPACES or name.count(".") < 2


def is_product(name: str) -> bool:
    """Whether an ATen operation or a library call is a matrix product."""
    return bare(name) in PRODUCTS


def is_fused_attention(name: str) -> bool:
    """One call that never writes the scores to memory: flash, memory-efficient, cuDNN."""
    word = bare(name)
    return "scaled_dot_product" in word and "math" not in word


def step_word(index: Index, step: CompiledStep) -> str:
    """`product`, `softmax`, `copy`, `layer norm … max`: its common name."""
    if step.kind != "kernel" and is_fused_attention(step.name):
        word = bare(step.name)
        kinds = (kind for kind in ("flash", "efficient", "cudnn") if kind in word)
        return f"{next(kinds, 'fused')} attention"
    if is_product(step.name):
        return "product"
    kernel = index.kernel_of(step)
    if step.kind == "kernel" and kernel is not None:
        names = {*kernel.origins, *re.split(r"[,\s]+", kernel.label)}
        if any("softmax" in name for name in names) or {"amax", "exp"} <= names:
            return "softmax"
        return kernel_label(kernel)
    return bare(step.name).strip("_").replace("_", " ")


def counted(words: Iterable[str]) -> str:
    """`2 products and a softmax`, `3 copies`."""
    parts = [_some(word, count) for word, count in Counter(words).items()]
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _some(word: str, count: int) -> str:
    if count > 1:
        return f"{count} {_many(word)}"
    return f"{'an' if word[:1] in 'aeiou' else 'a'} {word}"


def _many(word: str) -> str:
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return word[:-1] + "ies"
    if word.endswith("softmax"):
        return f"{word}es"
    return plural(2, word).removeprefix("2 ")


def named(names: Iterable[str], limit: int = 4) -> str:
    """`extern_kernels.bmm ×24, triton_red_fused_3 ×12`; names that differ in their last number
    only are one: `cpp_fused_add_* ×3`."""
    each = list(names)
    counter = Counter(each)
    stems = grouped((re.sub(r"_\d+$", "_*", name), name) for name in counter)
    words = []
    for stem, same in stems.items():
        count = sum(counter[name] for name in same)
        name = same[0] if len(same) == 1 else stem
        words.append(name if count == 1 else f"{name} ×{count}")
    return listed(words, limit)


def operations_text(operations: Sequence[EagerOperation]) -> str:
    """`aten.mul.Tensor ×2, aten.add.Tensor`; views if there is nothing else."""
    working = [operation for operation in operations if operation.launches] or operations
    return named(operation.operation for operation in working)


def split_arguments(text: str) -> tuple[list[str], dict[str, str]]:
    """`f32[4, 8], None, dim=-1` -> (`f32[4, 8]`, `None`) and {`dim`: `-1`}."""
    positional: list[str] = []
    keywords: dict[str, str] = {}
    for part in split_at_commas(text):
        match = re.match(r"([A-Za-z_]\w*)=(.*)", part, re.DOTALL)
        if match:
            keywords[match[1]] = match[2]
        else:
            positional.append(part)
    return positional, keywords
