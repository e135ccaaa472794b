"""Words for what a graph or scheduler calls by its long name."""

from __future__ import annotations

import re

from compiler.trace.records import Location, Node
from viewers.kit.cells import pad_left
from viewers.plain import plain
from viewers.words import numbers_text

VIEWS = frozenset({
    "view", "reshape", "permute", "transpose", "expand", "select", "slice",
    "squeeze", "unsqueeze", "t", "alias", "detach", "getitem", "as_strided",
    "unfold", "split", "chunk", "unbind", "flatten", "_unsafe_view", "split_with_sizes",
})  # fmt: skip
"""Operations that move no data."""

_OVERLOAD = re.compile(r"\.(default|Tensor|Scalar|int|dim_IntList|dim|dims|self|correction|out)$")


def short_target(target: str) -> str:
    """`aten.addmm.default` -> `addmm`, `torch.nn.functional.layer_norm` -> `layer_norm`."""
    if target.startswith(("aten.", "prims.", "inductor.")):
        return _OVERLOAD.sub("", target).split(".")[1]
    return target.removesuffix(".default").rpartition(".")[2] or target


def is_view(node: Node) -> bool:
    """Whether a node moves no data."""
    return node.op.startswith("call") and short_target(node.target) in VIEWS


def line_text(location: Location | None, inferred: bool = False, width: int = 4) -> str:
    """The gutter: `  19 `, ` ≈18 `, blanks where no line is known."""
    if location is None:
        return " " * (width + 1)
    number = f"≈{location.line}" if inferred else str(location.line)
    return pad_left(number, width) + " "


def operations_text(name: str) -> str:
    """`op9_op10_op11` -> `op9–11`, `op1_op4` -> `op1,4`; other names as they are."""
    parts = name.split("_")
    if len(parts) > 1 and all(re.fullmatch(r"op[0-9]{1,9}", part) for part in parts):
        numbers = sorted(int(part[2:]) for part in parts)
        if numbers[-1] - numbers[0] == len(numbers) - 1:
            return f"op{numbers[0]}–{numbers[-1]}"
        return "op" + numbers_text(numbers).replace(", ", ",")
    return plain(name)
