"""Kernels that differ only in numbers, as one kernel that takes these numbers as parameters.

Layers of a network differ in their sizes more often than in what they compute: the 28 sums over
columns of a ResNet's batch norms are four kernels. A kernel takes a tenth of a CPU second to
compile, a number of a launch nothing.

Some numbers stay in the text: those that all of these kernels share, tiles, and what the positions
of a large kernel are divided by. A power of two becomes a parameter even there, since dividing by
it takes one instruction either way. A number in an address tells how many elements one instruction
may move. Kernels are therefore joined only if their numbers are multiples of the same power of two,
which the compiler is told.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, count, islice
from operator import attrgetter

from tcw.compiler.codegen.triton.kernel import NumberParameter, TritonKernel

SMALL = 1 << 20
"""Elements below which a division of each position does not matter beside the launch."""
ALIGNED = 16
"""Multiples of more than this do not let an instruction move more."""
PROGRAM = frozenset({"program", "block"})
"""Numbers of a program: what they are divided by is divided once."""
FIRST = "first"
"""The first program of a piece; more of them have a number after it."""
CONSTANT = frozenset({"arange", "static_range"})
"""Functions whose arguments Triton needs when it compiles."""
NARROW = frozenset({"int8", "int16", "uint8", "uint16", "*i8", "*i16", "*u8", "*u16"})
"""Operators on integers that wrap around, where a number would need their dtype."""
WIDE = frozenset({"float64", "fp64", "*fp64"})
POWER = "power of two"
"""The kind of a number whose remainders `power_remainder` of vocabulary.py takes as fast."""
_LAST = (1 << 31) - 1
_DIGITS = re.compile(r"\d+(?:\.\d*)?(?:e[+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class _Literal:
    text: str
    kept: bool
    """The number must stay in the text."""
    kind: str
    """A number that only others of its kind may replace."""


@dataclass(frozen=True, slots=True)
class _Place:
    """The span of a number in a text, its end exclusive."""

    start: int
    end: int
    dividend: str
    """The variable whose remainder by the number is taken; "" for others."""


def shared(kernels: Sequence[TritonKernel]) -> list[TritonKernel]:
    """The same kernels in their order; those that are alike with numbers as parameters, so that
    their keys are equal."""
    groups: dict[object, dict[str, list[int]]] = {}
    literals: dict[int, list[_Literal]] = {}
    for place in _candidates(kernels):
        kernel = kernels[place]
        small = _elements(kernel) <= SMALL
        found = literals[place] = _literals(kernel.body, kernel.types, small)
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


def _candidates(kernels: Sequence[TritonKernel]) -> list[int]:
    """The places of kernels with one that differs from them in digits only. The others need not be
    parsed."""
    groups: dict[object, list[int]] = {}
    for place, kernel in enumerate(kernels):
        bare = _DIGITS.sub("#", kernel.key)
        groups.setdefault((bare, kernel.sizes, kernel.divisible), []).append(place)
    several = (g for g in groups.values() if len({kernels[place].key for place in g}) > 1)
    return sorted(place for group in several for place in group)


def _likeness(kernel: TritonKernel, literals: Sequence[_Literal]) -> object:
    """A key that is equal for kernels that can be joined."""
    text, _, tail = kernel.key.rpartition("\n")
    bare = _replaced(text, ("#",) * len(literals))
    kinds = tuple(literal.text if literal.kept else literal.kind for literal in literals)
    return bare, tail, kernel.warps, kernel.sizes, kernel.divisible, kinds


@lru_cache(maxsize=512)
def _literals(body: str, types: tuple[str, ...], small: bool) -> list[_Literal]:
    """The numbers in a kernel's code, in order. `small`: it has few positions to divide."""
    parents = _parents(body)
    functions = (node for node in parents if isinstance(node, ast.FunctionDef))
    first = next(function.body[0].lineno for function in functions if function.name == "NAME")
    words = {node.attr for node in parents if isinstance(node, ast.Attribute)} | set(types)
    sums = (n for n in parents if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Add))
    steps = {bin_op.right.id for bin_op in sums if isinstance(bin_op.right, ast.Name)}
    rows = set(_rows(parents))
    found = []
    for place, node in zip(_places(body), _numbers(body), strict=True):
        parent, value = parents[node], node.value
        assert isinstance(value, (int, float))
        divides = _divides(node, parent)
        power = divides and place.dividend in rows and _is_power(value)
        kept = (
            node.lineno < first
            or value in (0, 1)
            or bool(words & (NARROW if isinstance(value, int) else WIDE))
            or value > _LAST
            or isinstance(parent, ast.keyword)
            or _is_constant(node, parents)
            or (divides and not small and not power)
        )
        if power:
            kind = POWER
        else:
            kind = _kind(node, value, parent, steps) if isinstance(value, int) else "float"
        found.append(_Literal(body[place.start : place.end], kept, kind))
    return found


def _rows(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The variables with the positions of a program, a row of them from a multiple of `ALIGNED`:
    `x = tl.program_id(0) * 1024 + tl.arange(0, 1024)`."""
    for node in nodes:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.BinOp(
                    left=ast.BinOp(op=ast.Mult(), right=ast.Constant(value=int(step))),
                    op=ast.Add(),
                    right=ast.Call(func=function, args=[_, ast.Constant(value=width)]),
                ),
            ) if _name(function) == "arange" and step == width and step % ALIGNED == 0:
                yield name


def _is_power(value: float) -> bool:
    """Whether a mask takes remainders by the number, and they are rows as long as `ALIGNED`."""
    return isinstance(value, int) and value >= ALIGNED and value.bit_count() == 1


@lru_cache(maxsize=1024)
def _places(text: str) -> list[_Place]:
    """Where each number of a text is, in order."""
    lines = text.split("\n")
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    parents = _parents(text)
    found = []
    for node in _numbers(text):
        line, column = node.lineno - 1, node.col_offset
        start = starts[line] + len(lines[line].encode()[:column].decode())
        end = start + (node.end_col_offset or 0) - column
        dividend = ""
        match parents[node]:
            case ast.BinOp(left=ast.Name(id=name), op=ast.Mod(), right=divisor) if divisor is node:
                dividend = name
        found.append(_Place(start, end, dividend))
    return found


def _numbers(text: str) -> list[ast.Constant]:
    """The numbers of a text, in order."""
    constants = (node for node in _parents(text) if isinstance(node, ast.Constant))
    found = [n for n in constants if type(n.value) in (int, float)]
    return sorted(found, key=attrgetter("lineno", "col_offset"))


@lru_cache(maxsize=4)
def _parents(text: str) -> dict[ast.AST, ast.AST]:
    """The nodes of a text's syntax tree, with that which each is a part of."""
    found: dict[ast.AST, ast.AST] = {}
    pending: list[ast.AST] = [ast.parse(text)]
    while pending:
        node = pending.pop()
        for part in ast.iter_child_nodes(node):
            if not isinstance(part, (ast.expr_context, ast.operator, ast.cmpop)):
                found[part] = node
                pending.append(part)
    return found


def _is_constant(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether Triton needs the number when it compiles: in a shape, an index or a range."""
    while not isinstance(node, ast.stmt):
        parent = parents[node]
        if isinstance(parent, ast.List) or (
            isinstance(parent, ast.Subscript) and node is parent.slice
        ):
            return True
        if isinstance(parent, ast.Call) and _name(parent.func) in CONSTANT:
            return True
        node = parent
    return False


def _divides(node: ast.Constant, parent: ast.AST) -> bool:
    """Whether each position is divided by the number."""
    return (
        isinstance(parent, ast.BinOp)
        and node is parent.right
        and isinstance(parent.op, (ast.FloorDiv, ast.Mod))
        and _last(parent.left) not in PROGRAM
    )


def _kind(node: ast.Constant, value: int, parent: ast.AST, steps: set[str]) -> str:
    """`steps`: what addresses go up by themselves, not by a multiple of them."""
    counts = False
    if isinstance(parent, ast.Call):  # the end of a loop
        place = next((n for n, arg in enumerate(parent.args) if arg is node), 0)
        counts = place > 0 and _name(parent.func) in ("minimum", "range")
    elif isinstance(parent, ast.Assign):
        counts = _last(parent.targets[0]).partition("_")[0] == FIRST
    elif isinstance(parent, ast.BinOp) and node is parent.right:
        per_program = isinstance(parent.op, (ast.FloorDiv, ast.Mod, ast.Sub))
        counts = per_program and _last(parent.left) in PROGRAM
    elif isinstance(parent, ast.Compare) and isinstance(parent.ops[0], ast.Lt):
        # a mask matters to memory only where the dimension lies along it
        bounded = _last(parent.left)
        counts = bounded in PROGRAM or (bounded in ("x", "r") and bounded not in steps)
    return "count" if counts else f"multiple of {math.gcd(value, ALIGNED)}"


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else _last(function)


def _last(expression: ast.expr) -> str:
    """The name that an expression ends with, if it does."""
    while isinstance(expression, ast.BinOp):
        expression = expression.right
    return expression.id if isinstance(expression, ast.Name) else ""


def _replaced(text: str, names: Sequence[str], powers: Sequence[int] = ()) -> str:
    """The text with a name for each of its numbers, in order; an empty one leaves the number.
    `powers`: the places among them of powers of two that remainders are taken by."""
    pieces, last = [], 0
    for n, (place, name) in enumerate(zip(_places(text), names, strict=True)):
        start, put = place.start, name or text[place.start : place.end]
        if name and n in powers:
            start = text.rindex(place.dividend, last, start)
            put = f"power_remainder({place.dividend}, {name})"
        pieces += [text[last:start], put]
        last = place.end
    return "".join((*pieces, text[last:]))


def _elements(kernel: TritonKernel) -> float:
    """Positions of all programs; infinite if they are unknown."""
    programs = kernel.programs()
    whole = math.inf if programs is None else programs
    return whole * kernel.tile.x_block * max(kernel.tile.r_block, 1)


def _names(kernels: Sequence[TritonKernel], most: int) -> list[str]:
    """Names for the parameters that none of these kernels uses."""
    every = (f"number_{n}" for n in count())
    return list(islice((n for n in every if not any(n in k.body for k in kernels)), most))


def _with_numbers(
    kernel: TritonKernel,
    literals: Sequence[_Literal],
    differing: Sequence[int],
    columns: Sequence[tuple[str, ...]],
    names: Sequence[str],
) -> TritonKernel:
    """The kernel with these literals as parameters; those that go together in all are one."""
    parameters: dict[tuple[str, ...], str] = {}
    named = {n: parameters.setdefault(columns[n], names[len(parameters)]) for n in differing}
    numbers = {name: _number(name, literals, n, columns) for n, name in reversed(named.items())}
    added = "".join(f", {name}" for name in sorted(numbers, key=names.index))
    every = tuple(named.get(n, "") for n in range(len(literals)))
    powers = [n for n in named if literals[n].kind == POWER]
    before, head, after = _replaced(kernel.body, every, powers).partition("def NAME(")
    body = before + head + after.replace("):\n", f"{added}):\n", 1)
    text, _, tail = kernel.key.rpartition("\n")
    text = _replaced(text, every, powers)
    ordered = tuple(numbers[name] for name in sorted(numbers, key=names.index))
    kinds = " ".join(f"{parameter.type}/{parameter.multiple}" for parameter in ordered)
    needs = kernel.needs | {"power_remainder"} if powers else kernel.needs
    key = f"{text}\n{tail} {kinds}"
    return replace(kernel, body=body, key=key, numbers=ordered, needs=needs)


def _number(
    name: str, literals: Sequence[_Literal], n: int, columns: Sequence[tuple[str, ...]]
) -> NumberParameter:
    text = literals[n].text
    if not text.isdigit():
        return NumberParameter(name, "fp32", float(text))
    return NumberParameter(name, "i32", int(text), math.gcd(ALIGNED, *map(int, columns[n])))
