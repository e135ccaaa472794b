"""Operations and kernels in few words: `softmax`, `embedding, layer norm`, `copy`.

A kernel's recorded label lists all operations that torch says it comes from; this picks those
that a reader would name it by. Nothing is invented: `…` replaces omitted words that say more than
arithmetic does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

from tcw.compiler.trace.records import Kernel, KernelBinary, Node
from tcw.viewers.words import bytes_text, plural

WORDS = 2
"""Maximum number of operations named in a short label."""

WRITTEN_IN = {"cpp": "C++", "triton": "Triton", "aten": "ATen", "rng": "engine"}
"""A kernel's language, or whose code is called, in a word."""

CALLED = {"aten": "library call", "rng": "drawn by the engine"}
"""What a kernel without generated code is, by its language."""


def calls_text(languages: Iterable[str] | Mapping[str, int]) -> str:
    """`27 library calls, 2 draws`: the kernels without generated code, of the languages of all
    or their counts."""
    found = Counter(languages)
    nouns = (("aten", "library call"), ("rng", "draw"))
    return ", ".join(plural(found[one], noun) for one, noun in nouns if found[one])


_MOVEMENT = frozenset({
    "view", "unsafe view", "reshape", "permute", "transpose", "t", "expand", "expand as",
    "select", "slice", "squeeze", "unsqueeze", "alias", "detach", "getitem", "as strided",
    "unfold", "split", "split with sizes", "chunk", "unbind", "flatten", "clone", "contiguous",
    "copy", "to copy", "convert element type", "select scatter", "slice scatter",
})  # fmt: skip
_ARITHMETIC = frozenset({
    "add", "sub", "rsub", "mul", "div", "neg", "abs", "pow", "square", "sqrt", "rsqrt",
    "reciprocal", "exp", "log", "eq", "ne", "lt", "le", "gt", "ge", "logical not", "logical and",
    "logical or", "bitwise not", "bitwise and", "where", "scalar tensor", "full", "full like",
    "zeros", "ones", "zeros like", "ones like", "new zeros", "new ones", "arange", "iota", "fill",
    "constant pad nd", "addcmul", "addcdiv",
})  # fmt: skip
_PREFIXES = ("native_", "cudnn_", "prepare_", "fused_")
_SUFFIXES = (
    "_for_cpu", "_online", "_data", "_forward", "_overrideable", "_input", "_no_training",
    "_functional", "_legit", "_with_indices",
)  # fmt: skip
VIEWS = frozenset({
    "view", "reshape", "permute", "transpose", "expand", "select", "slice",
    "squeeze", "unsqueeze", "t", "alias", "detach", "getitem", "as_strided",
    "unfold", "split", "chunk", "unbind", "flatten", "_unsafe_view", "split_with_sizes",
})  # fmt: skip
"""Operations that move no data."""

_OVERLOAD = re.compile(r"\.(default|Tensor|Scalar|int|dim_IntList|dim|dims|self|correction|out)$")
_MORE = re.compile(r" \+ \d+ more$")


def short_target(target: str) -> str:
    """`aten.addmm.default` -> `addmm`, `torch.nn.functional.layer_norm` -> `layer_norm`."""
    if target.startswith(("aten.", "prims.", "inductor.")):
        return _OVERLOAD.sub("", target).split(".")[1]
    return target.removesuffix(".default").rpartition(".")[2] or target


def is_view(node: Node) -> bool:
    """Whether a node moves no data."""
    return node.op.startswith("call") and short_target(node.target) in VIEWS


def kernel_label(kernel: Kernel) -> str:
    """A kernel's label in viewers; its name if no operation was recorded."""
    if kernel.language == "aten":
        return operation_label(kernel.label, "backward" in kernel.graph) or kernel.name
    return short_label(kernel.label, "backward" in kernel.graph) or kernel.name


def binary_words(binary: KernelBinary) -> list[str]:
    """`96 registers`, `8.0 KB shared`, `no spills`, `50% occupancy`: what is known of them."""
    words = []
    if binary.registers is not None:
        words.append(plural(binary.registers, "register"))
    if binary.shared_bytes is not None:
        words.append(f"{bytes_text(binary.shared_bytes)} shared")
    if binary.spill_bytes is not None:
        spills = binary.spill_bytes
        words.append(f"{bytes_text(spills)} spilled" if spills else "no spills")
    if binary.resident_warps is not None and binary.most_warps:
        words.append(f"{binary.resident_warps / binary.most_warps:.0%} occupancy")
    return words


def operation_label(label: str, backward: bool = False) -> str:
    """The short label of one operation of a library: a view keeps its name, for it copies nothing,
    while generated code that computes no more than a view is a copy."""
    return label.strip("_").replace("_", " ") if label in VIEWS else short_label(label, backward)


@lru_cache(maxsize=4096)
def short_label(label: str, backward: bool = False) -> str:
    """`view, permute, clone` -> `copy`, `mul, _softmax` -> `softmax`, `abs, layer_norm, max, gt` ->
    `layer norm, max`. `backward`: of a kernel of the backward, where `x_backward` is what it
    computes and `x` only helps."""
    full = label.removeprefix("copy for ")
    listed = _MORE.sub("", full)
    more = listed != full
    words = list(dict.fromkeys(filter(None, map(_word, listed.split(", ")))))
    for word in list(words):
        base = word.removesuffix(" backward")
        if base != word and base in words:
            words.remove(base if backward else word)
    if not backward:
        words = [word for word in words if not word.endswith(" backward")] or words
    kept = [word for word in words if word.removesuffix(" backward") not in _MOVEMENT]
    if full != label or (words and not kept and not more):
        return "copy"
    telling = [word for word in kept if word not in _ARITHMETIC]
    chosen = telling or kept
    if len(chosen) > WORDS:
        return f"{chosen[0]} … {chosen[-1]}"
    return ", ".join(chosen) + (" …" if more else "")


def operations_of(label: str) -> set[str]:
    """All operations that a kernel's recorded label lists, as `short_label` calls them."""
    return {_word(name) for name in _MORE.sub("", label.removeprefix("copy for ")).split(", ")}


def _word(name: str) -> str:
    """`_native_layer_norm_backward` -> `layer norm backward`; "" for a name without letters."""
    name = name.strip("_ ")
    end = "_backward" if name.endswith("_backward") or "_backward_" in name else ""
    base = name.partition("_backward")[0] if end else name
    if base.startswith("scaled_dot_product"):
        base = "attention"
    for prefix in _PREFIXES:
        base = base.removeprefix(prefix)
    for suffix in _SUFFIXES:
        base = base.removesuffix(suffix)
    return (base.strip("_ ") + end).replace("_", " ").strip() or name.replace("_", " ")
