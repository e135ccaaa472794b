"""Kernels that differ only in numbers, as one kernel that takes these numbers as parameters.

Layers of a network differ in their sizes more often than in what they compute: the 28 sums over
columns of a ResNet's batch norms are four kernels. A kernel takes a tenth of a CPU second to
compile, a number of a launch nothing.

What a kernel is as fast with is left as it is: numbers that all of these kernels share, tiles, and
what the positions of a large kernel are divided by. A number in an address tells how many elements
one instruction may move, so that these kernels' numbers are multiples of the same power of two,
which the compiler is told.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from compiler.codegen.triton.kernel import Kernel, Number
from compiler.loops.sizes import Size

SMALL = 1 << 20
"""Elements below which a division of each position does not matter beside the launch."""
ALIGNED = 16
"""Multiples of more than this do not let an instruction move more."""
_LITERAL = re.compile(r"(?<![\w.])(?:\d+\.\d*(?:e[-+]?\d+)?|\d+e[-+]?\d+|\d+)(?![\w.])")
_COMMENT = re.compile(r"^\s*#.*$|\s+# .*$", re.MULTILINE)
_FIXED = re.compile(r"\[[^\]\[]*\]|(?:static_r|ar)ange\([^()]*\)|\"[^\"]*\"|'[^']*'")
_HEAD = re.compile(r"^def NAME\(([^)]*)\):$", re.MULTILINE)
_DIVIDES = re.compile(r"(?://|%) $")
_ONE_NUMBER = re.compile(r"\b(?:program|block) (?://|%) $")
"""A program's number is divided once."""
_BOUND = re.compile(r"\b([xr]) < $")
"""A mask: it matters to memory only where the dimension lies along it."""
_LIMIT = re.compile(
    r"\b(?:program|block) (?://|%|<|-) $|\bfirst(?:_\d+)? = $|minimum\([^()]*, $|range\(\d+, $"
)
"""A number of programs or steps: no address has it as a factor."""
_NARROW = re.compile(r"\bu?int(?:8|16)\b|\*[iu](?:8|16)\b")
"""Where integers wrap around, a number would have to have their dtype."""
_LAST = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class _Literal:
    start: int
    end: int
    text: str
    kept: bool
    """It must stay in the text."""
    kind: str
    """A number that only others of its kind may replace."""


def shared(kernels: Sequence[Kernel]) -> list[Kernel]:
    """The same kernels in their order; those that are alike with numbers as parameters, so that
    their keys are equal."""
    groups: dict[object, dict[str, list[int]]] = {}
    literals = [_literals(kernel) for kernel in kernels]
    for place, kernel in enumerate(kernels):
        found = literals[place]
        if found:
            same = groups.setdefault(_likeness(kernel, found), {})
            same.setdefault(kernel.key, []).append(place)
    made = list(kernels)
    for group in groups.values():
        if len(group) < 2:
            continue
        each = [places[0] for places in group.values()]
        columns = list(zip(*([one.text for one in literals[p]] for p in each), strict=True))
        differing = [n for n, column in enumerate(columns) if len(set(column)) > 1]
        names = _names([kernels[p] for p in each], len(differing))
        for places in group.values():
            for place in places:
                made[place] = _with_numbers(
                    kernels[place], literals[place], differing, columns, names
                )
    return made


def _likeness(kernel: Kernel, literals: Sequence[_Literal]) -> object:
    """What kernels have in common that can be one."""
    text, _, tail = kernel.key.rpartition("\n")
    kinds = tuple(one.text if one.kept else one.kind for one in literals)
    return _LITERAL.sub("#", text), tail, kernel.warps, kernel.sizes, kernel.divisible, kinds


def _kind(text: str, before: str, code: str) -> str:
    if not text.isdigit():
        return "float"
    mask = _BOUND.search(before)
    if _LIMIT.search(before) or (mask and not re.search(rf"\+ {mask[1]}(?!\w| \*)", code)):
        return "count"
    return f"multiple of {math.gcd(int(text), ALIGNED)}"


def _literals(kernel: Kernel) -> list[_Literal]:
    """The numbers in a kernel's code, in order; none if their places are unknown."""
    body = kernel.body
    bare = _COMMENT.sub(lambda found: " " * len(found[0]), body)
    head = _HEAD.search(body)
    if head is None:
        return []
    fixed = [found.span() for found in _FIXED.finditer(bare)]
    text, _, tail = kernel.key.rpartition("\n")
    narrow = _NARROW.search(text) is not None or _NARROW.search(tail) is not None
    wide = "float64" in text or "fp64" in tail
    small = _elements(kernel) <= SMALL
    found = []
    for one in _LITERAL.finditer(bare):
        start, end = one.span()
        before = bare[bare.rfind("\n", 0, start) + 1 : start]
        divides = _DIVIDES.search(before) and not _ONE_NUMBER.search(before)
        kept = (
            start < head.start()
            or any(first <= start < last for first, last in fixed)
            or before.endswith("=")
            or float(one[0]) in (0, 1)
            or (narrow if one[0].isdigit() else wide)
            or (one[0].isdigit() and int(one[0]) > _LAST)
            or (bool(divides) and not small)
        )
        found.append(_Literal(start, end, one[0], kept, _kind(one[0], before, bare)))
    texts = [one.text for one in found]
    return found if texts == _LITERAL.findall(text) else []


def _elements(kernel: Kernel) -> float:
    """Positions of all programs; infinite if they are unknown."""
    whole = 1.0
    for size, block, factor in (kernel.programs, *_across(kernel)):
        whole *= -(-size // block) * factor if isinstance(size, int) else math.inf
    return whole * kernel.tile.x_block * max(kernel.tile.r_block, 1)


def _across(kernel: Kernel) -> Iterator[tuple[Size, int, int]]:
    if kernel.across is not None:
        yield (*kernel.across, 1)


def _names(kernels: Sequence[Kernel], count: int) -> list[str]:
    """Names for the parameters that none of these kernels uses."""
    taken = {word for kernel in kernels for word in re.findall(r"[A-Za-z_]\w*", kernel.body)}
    return [name for n in range(len(taken) + count) if (name := f"number_{n}") not in taken]


def _with_numbers(
    kernel: Kernel,
    literals: Sequence[_Literal],
    differing: Sequence[int],
    columns: Sequence[tuple[str, ...]],
    names: Sequence[str],
) -> Kernel:
    """The kernel with these literals as parameters; those that go together in all are one."""
    parameters: dict[tuple[str, ...], str] = {}
    named = {n: parameters.setdefault(columns[n], names[len(parameters)]) for n in differing}
    numbers = {name: _number(name, literals, n, columns) for n, name in reversed(named.items())}
    body = kernel.body
    for n, name in reversed(named.items()):
        body = body[: literals[n].start] + name + body[literals[n].end :]
    added = "".join(f", {name}" for name in sorted(numbers, key=names.index))
    body = _HEAD.sub(lambda head: f"def NAME({head[1]}{added}):", body, count=1)
    text, _, tail = kernel.key.rpartition("\n")
    places = iter(range(len(literals)))
    text = _LITERAL.sub(lambda found: named.get(next(places), found[0]), text)
    ordered = tuple(numbers[name] for name in sorted(numbers, key=names.index))
    kinds = " ".join(f"{one.type}/{one.multiple}" for one in ordered)
    return replace(kernel, body=body, key=f"{text}\n{tail} {kinds}", numbers=ordered)


def _number(
    name: str, literals: Sequence[_Literal], n: int, columns: Sequence[tuple[str, ...]]
) -> Number:
    text = literals[n].text
    if not text.isdigit():
        return Number(name, "fp32", float(text))
    return Number(name, "i32", int(text), math.gcd(ALIGNED, *map(int, columns[n])))
