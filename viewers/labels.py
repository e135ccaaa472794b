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

from tcw.compiler.trace.compile_names import compile_of
from tcw.compiler.trace.records import Graph, Kernel, KernelBinary, Location, Node
from tcw.viewers.kit.cells import pad_left
from tcw.viewers.plain import plain
from tcw.viewers.recording import Recording
from tcw.viewers.words import bytes_text, numbers_text, plural

WORDS = 2
"""Maximum number of operations named in a short label."""

WRITTEN_IN = {"cpp": "C++", "triton": "Triton", "aten": "ATen", "rng": "engine"}
"""A kernel's language, or whose code is called, in a word."""

CALLED = {"aten": "library call", "rng": "drawn by the engine"}
"""What a kernel without generated code is, by its language."""


def calls_text(languages: Iterable[str] | Mapping[str, int]) -> str:
    """`27 library calls, 2 draws`: the kernels without generated code, of the languages of all
    or their counts."""
    counter = Counter(languages)
    nouns = (("aten", "library call"), ("rng", "draw"))
    return ", ".join(plural(counter[one], noun) for one, noun in nouns if counter[one])


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


def line_text(location: Location | None, inferred: bool = False) -> str:
    """The gutter: `  19 `, ` ≈18 `, blanks if no line is known."""
    if location is None:
        return " " * 5
    number = f"≈{location.line}" if inferred else str(location.line)
    return pad_left(number, 4) + " "


def operations_text(name: str) -> str:
    """`op9_op10_op11` -> `op9–11`, `op1_op4` -> `op1,4`; other names as they are."""
    parts = name.split("_")
    if len(parts) > 1 and all(re.fullmatch(r"op[0-9]{1,9}", part) for part in parts):
        numbers = sorted(int(part[2:]) for part in parts)
        if numbers[-1] - numbers[0] == len(numbers) - 1:
            return f"op{numbers[0]}–{numbers[-1]}"
        return "op" + numbers_text(numbers).replace(", ", ",")
    return plain(name)


class KernelNames:
    """The names of the kernels of one recording."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._known: dict[str, str] = {}

    def name(self, kernel: Kernel) -> str:
        """`softmax`, `addmm qkv`. If too many operations are recorded: those of the user's
        program."""
        known = self._known.get(kernel.id)
        if known is None:
            known = self._known[kernel.id] = self._name(kernel)
        return known

    def title(self, kernel: Kernel) -> str:
        """`k4 softmax`; with its last line if other kernels of the compile have its name:
        `k2 copy :31`."""
        name = self.name(kernel)
        graph = self.recording.graphs.get(kernel.graph)
        compile_id = graph.compile_id if graph else compile_of(kernel.graph)
        same = [
            one
            for one in self.recording.kernels_of.get(compile_id, [])
            if one.predicted == kernel.predicted and self.name(one) == name
        ]
        line = last_line(kernel)
        apart = line and len({last_line(one) for one in same}) > 1
        return f"{kernel.id} {name} :{line}" if apart else f"{kernel.id} {name}"

    def purpose(self, graph: Graph, names: Iterable[str]) -> str:
        """The captured operations that nodes of a graph come from; "" if the trace does not say."""
        nodes = self.recording.nodes(graph.id)
        wanted = dict.fromkeys(name for name in names if name in nodes and not is_view(nodes[name]))
        while graph.kind != "captured":
            known = self.recording.nodes(graph.id)
            origins = (known[name].origins for name in wanted if name in known)
            wanted = dict.fromkeys(name for group in origins for name in group)
            parent = self.recording.graphs.get(graph.parent)
            if parent is None or parent is graph:
                return ""
            graph = parent
        known = self.recording.nodes(graph.id)
        targets = (short_target(known[name].target) for name in wanted if name in known)
        return short_label(", ".join(dict.fromkeys(targets)))

    def _name(self, kernel: Kernel) -> str:
        label = kernel_label(kernel)
        graph = self.recording.graphs.get(kernel.graph)
        if graph is None:
            return label
        if not kernel.generated:
            nodes = self.recording.nodes(graph.id)
            found = [nodes[name] for name in self._origins(kernel) if name in nodes]
            main = next((node for node in reversed(found) if not is_view(node)), None)
            if main is None or label != short_label(short_target(main.target)):
                return label
            module = _module(main.module)
            return label if module == label else f"{label} {module}".rstrip()
        if label.endswith("…"):
            return self.purpose(graph, self._origins(kernel)) or label
        return label

    def _origins(self, kernel: Kernel) -> tuple[str, ...]:
        """The nodes of its graph that a kernel computes."""
        operations = self.recording.operations
        records = (operations.get((kernel.graph, name)) for name in kernel.nodes)
        return kernel.origins or tuple(
            origin for record in records if record for origin in record.origins
        )


def _module(path: str) -> str:
    """`qkv` of `layers.0.qkv`; `attention.self` and `net.0`, for `self` and `0` say nothing."""
    rest, _, last = path.rpartition(".")
    return (
        f"{rest.rpartition('.')[2]}.{last}" if rest and (last == "self" or last.isdigit()) else last
    )


def last_line(kernel: Kernel) -> int:
    """The last user line that a kernel computes; 0 if none is known."""
    return max((place.line for place in kernel.locations), default=0)
