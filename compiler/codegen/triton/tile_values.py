"""Expressions as Triton."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tcw.compiler.codegen.nests.names import base_name
from tcw.compiler.codegen.nests.nest_values import NestValues
from tcw.compiler.codegen.nests.rounding import TURNS_OVER
from tcw.compiler.codegen.triton import tile_indices
from tcw.compiler.codegen.triton.scopes import Scope
from tcw.compiler.codegen.triton.tile_indices import Dimension
from tcw.compiler.codegen.triton.tiles import VECTOR, narrowest
from tcw.compiler.codegen.triton.vocabulary import (
    TYPES,
    Unwritable,
    constant,
    convert,
    held_as,
    literal,
    operator,
)
from tcw.compiler.loops.dtypes import BYTES, REDUCED, compute_dtype
from tcw.compiler.loops.expressions import (
    Address,
    Const,
    Expression,
    IndexTerm,
    Local,
    Op,
    Position,
    Read,
    ReadIndexed,
    SizeOf,
    walk,
)
from tcw.compiler.loops.graph import ARG
from tcw.compiler.loops.nest import Reduction, ScanAlong, Write

if TYPE_CHECKING:
    from tcw.compiler.codegen.triton.kernel import Writer

LONG = 60
"""Maximum length of a text inside another one."""
LITERALS = frozenset(
    {"add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge", "where", "maximum", "minimum"}
    | {"bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right", "fmax", "fmin"}
    | {"pow", "floor_divide", "trunc_divide", "remainder", "fmod"}
)
"""Operators whose operand may be a bare number beside a tile."""
FEWEST_RUNS = 16
"""Fewer runs of lanes than that are not worth a tile of their own."""
ATOMIC = frozenset({"float64", "float32", "float16", "bfloat16", "int64", "int32"})
"""What a GPU adds in memory."""


class Values(NestValues[Scope]):
    """The values of one kernel."""

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer.facts)
        self.writer = writer
        self.needs: set[str] = set()
        self.again: frozenset[str] = frozenset()
        """Buffers that a later pass over the row reads again."""
        self.before: frozenset[str] = frozenset()
        """Buffers that an earlier one has read."""
        self.exact = _exact(writer)
        self.neighbours = VECTOR // narrowest(writer.nest)
        """Elements that a thread has side by side."""

    def begin_loop(self, axes: tuple[int, ...]) -> Scope:
        """The scope of a loop over axes. Values of another loop are unknown in it."""
        root = self.writer.root
        root.axes = frozenset(range(len(self.writer.nest.axes))) - frozenset(axes)
        self.defined = {n: (s, t) for n, (s, t) in self.defined.items() if s is root}
        self._depths.clear()
        return Scope(root)

    def complete(self, statement: Reduction | ScanAlong, text: str, scope: Scope) -> None:
        """Name the result of a reduction or scan."""
        held = compute_dtype(statement.expression.dtype)
        wanted = compute_dtype(statement.dtype)
        if statement.op in ARG:
            held = "int64"
        text = convert(text, held, wanted)
        if not text.isidentifier():
            text = self._named(statement.name, text, scope, statement.origins)
        self.define(statement.name, scope, text)

    def of(self, expression: Expression, scope: Scope) -> str:
        """The text of a value in a scope."""
        if isinstance(expression, Const):
            return constant(expression.number, expression.dtype)
        return super().of(expression, scope)

    def _compute(self, expression: Expression, scope: Scope, *, away: bool) -> str:
        if isinstance(expression, Local):
            known = self.defined.get(expression.name)
            if known is not None:
                return known[1]
            statement = self._statement(expression.name, scope)
            text = self.of(statement.expression, scope)
            text = held_as(text, statement.expression.dtype, statement.dtype)
            if text.isidentifier():
                return text
            return self._named(statement.name, text, scope, statement.origins)
        if isinstance(expression, SizeOf):
            return f"tl.cast({tile_indices.text(expression.size)}, {TYPES[expression.dtype]})"
        if isinstance(expression, Op):
            text, wanted = self._op(expression, scope), expression.name
        elif isinstance(expression, (Read, ReadIndexed)):
            text = self._load(expression, scope)
            return self._named(f"{base_name(expression.buffer)}_value", text, scope)
        elif isinstance(expression, Position):
            text = f"({self._position(expression.address)})"
            text = f"({text} + tl.zeros([1], tl.int64))" if text.isdigit() else text
            text, wanted = f"tl.cast({text}, tl.int64)", "position"
        else:
            raise AssertionError(f"{type(expression).__name__} in a nest")
        if self.facts.uses[expression] > 1 or len(text) > LONG:
            return self._named(wanted, text, scope)
        return text

    def _named(self, wanted: str, text: str, scope: Scope, origins: tuple[str, ...] = ()) -> str:
        name = self.writer.names.new(wanted)
        scope.add(f"{name} = {text}", origins)
        return name

    def _op(self, expression: Op, scope: Scope) -> str:
        arguments = expression.args
        beside = arguments[1:] if expression.name == "where" else arguments
        bare = expression.name in LITERALS and any(not isinstance(a, Const) for a in beside)
        args = [
            literal(a.number, a.dtype) if bare and isinstance(a, Const) else self.of(a, scope)
            for a in arguments
        ]
        operand = arguments[-1].dtype
        quick = expression not in self.exact
        return operator(
            expression.name, args, operand, expression.dtype, self.needs.add, quick=quick
        )

    # Memory

    def _position(self, address: Address) -> str:
        """An address, in elements."""
        at = tile_indices.offset(self.writer.nest, address, self._dimensions)
        if not address.then:
            return at
        return tile_indices.through(address.then, at)

    @property
    def _dimensions(self) -> tuple[Dimension, Dimension]:
        return self.writer.x, self.writer.r

    def _mask(self, axes: frozenset[int], dimensions: Sequence[Dimension] = ()) -> list[str]:
        found = []
        for dimension in dimensions or self._dimensions:
            if dimension.mask and axes & set(dimension.axes):
                found.append(dimension.mask)
        return found

    def _run(self, read: Read) -> int:
        """How many neighbouring lanes of a row read the same element, if whole runs of them do: a
        channel's parameter, along its image. 1 if that is not known.

        A thread would issue a load for each of its lanes. A group norm of 16 x 512 x 64 x 64 with
        an activation takes 73 µs with such loads, and 58 with one load a run (H100, bfloat16).
        Without a reduction memory is the limit either way.
        """
        kept, row = self.writer.x, self.writer.r
        reduced = any(self.writer.nest.axes[axis].reduced for axis in row.axes)
        if read.address.then or not reduced or max(kept.axes, default=-1) > max(row.axes):
            return 1  # along kept axes, a thread's lanes are not neighbours of the row
        below = [low for low, _, _ in tile_indices.parts(self.writer.nest, read.address, row)]
        width = self.neighbours
        if not below or row.block < FEWEST_RUNS * width:
            return 1
        return width if all(isinstance(low, int) and low % width == 0 for low in below) else 1

    def _load_of_runs(self, read: Read, width: int) -> str:
        """One element for each run of lanes of a row, spread over its lanes."""
        kept, row = self.writer.x, self.writer.r
        runs = row.runs(width)
        axes = self.facts.moves(read.address)
        masks = self._mask(axes, (kept, runs))
        at = tile_indices.offset(self.writer.nest, read.address, (kept, runs))
        text = self._loaded(read.buffer, at, masks)
        rows = kept.block if axes & set(kept.axes) else 1
        text = f"tl.broadcast_to({text}[:, :, None], [{rows}, {runs.block}, {width}])"
        return f"tl.reshape({text}, [{rows}, {row.block}])"

    def _load(self, read: Read | ReadIndexed, scope: Scope) -> str:
        if isinstance(read, Read) and (width := self._run(read)) > 1:
            return self._load_of_runs(read, width)
        terms: tuple[IndexTerm, ...] = ()
        buffer, address, otherwise = read.buffer, read.address, None
        if isinstance(read, ReadIndexed):
            terms, otherwise = read.terms, read.otherwise
        axes = self.facts.varies(address, terms)
        at = self._position(address)
        masks = self._mask(axes)
        added, inside = self._terms(terms, otherwise is not None, masks, scope)
        at = " + ".join(part for part in (at if at != "0" or not added else "", *added) if part)
        masks += inside
        dtype = self.writer.dtypes[buffer]
        other = "0" if otherwise is None else literal(otherwise, dtype)
        hint = "" if terms else self._eviction(buffer, address)
        return self._loaded(buffer, at, masks, other, hint)

    def _loaded(
        self, buffer: str, at: str, masks: Sequence[str], other: str = "0", hint: str = ""
    ) -> str:
        """The elements at positions, as registers hold them."""
        pointer, dtype = self.writer.bases[buffer], self.writer.dtypes[buffer]
        given = f", {' & '.join(masks)}, other={other}" if masks else ""
        text = f"tl.load({pointer} + {at}{given}{hint})" if at != "0" else f"tl.load({pointer})"
        return f"{text}.to(tl.float32)" if dtype in REDUCED else text

    def _eviction(self, buffer: str, address: Address) -> str:
        """A hint for L2: keep a row that its program reads again in a later pass, and do not keep
        what is read for the last time. What L2 holds anyway may be read by the next kernel."""
        axes = self.facts.moves(address)
        x, r = self.writer.tile.x, self.writer.tile.r
        sizes = self.writer.nest.axes
        own = bool(axes & set(r)) and not any(sizes[axis].size != 1 for axis in set(x) - axes)
        if own and buffer in self.again:
            return ', eviction_policy="evict_last"'
        if (own and buffer in self.before) or buffer in self.writer.streamed:
            return ', eviction_policy="evict_first"'
        return ""

    def _terms(
        self, terms: tuple[IndexTerm, ...], chosen: bool, masks: list[str], scope: Scope
    ) -> tuple[list[str], list[str]]:
        """What index terms add to a position, and the conditions under which it is in range."""
        added: list[str] = []
        inside: list[str] = []
        for term in terms:
            text = self.of(term.index, scope)
            size = tile_indices.text(term.size)
            if term.wraps:
                wrapped = f"tl.where({text} < 0, {text} + {size}, {text})"
                text = self._named("at", wrapped, scope)
            within = f"({text} >= 0) & ({text} < {size})"
            if chosen:
                inside.append(self._named("within", within, scope))
            elif term.checked:
                here = self._named("within", within, scope)
                outside = "".join(f" | (({mask}) == 0)" for mask in masks)
                words = f'"index out of range in {term.says or "self"}"'
                scope.add(f"tl.device_assert({here}{outside}, {words})")
            added.append(text if term.stride == 1 else f"{text} * {tile_indices.text(term.stride)}")
        return added, inside

    def store(self, write: Write, scope: Scope) -> None:
        """Write a value to memory, at an address and indices; set or added."""
        text = held_as(self.of(write.expression, scope), write.expression.dtype, write.dtype)
        axes = frozenset(write.axes) | self.facts.axes(write.expression)
        masks = self._mask(axes)
        added, inside = self._terms(write.terms, False, masks, scope)
        at = self._position(write.address)
        at = " + ".join(part for part in (at if at != "0" or not added else "", *added) if part)
        shaped = self._shaped(at, axes, write.address, write.terms)
        mask = " & ".join((*masks, *inside))
        if write.mode == "add":
            self._add(write, shaped, text, mask, scope)
        elif write.mode != "set":
            raise Unwritable(f"no store that combines elements by {write.mode}")
        else:
            hint = self._store_hint(write)
            self.put(write.buffer, shaped, text, mask, scope, write.origins, hint)

    def _store_hint(self, write: Write) -> str:
        """A hint for L2: rows that are read in several passes stay there if what is written, more
        than L2 holds, does not push them out. A softmax of 2048 x 65536 bfloat16 takes 192 µs, and
        197 without (H100)."""
        writer = self.writer
        if not self.before or not set(write.axes) & set(writer.tile.r):
            return ""
        size = writer.nest.size(write.axes)
        large = writer.limits.number(size) * BYTES[write.dtype] > writer.limits.l2_bytes
        return ', eviction_policy="evict_first"' if large else ""

    def _shaped(
        self, at: str, axes: frozenset[int], address: Address, terms: tuple[IndexTerm, ...]
    ) -> str:
        """A position with a dimension for each that the value has."""
        moves = self.facts.varies(address, terms)
        writer = self.writer
        lacks_x = not moves & set(writer.x.axes)
        if writer.flat:
            return f"{at} + tl.zeros([{writer.x.block}], tl.int32)" if lacks_x else at
        lacks_r = not moves & set(writer.r.axes) and bool(axes & set(writer.r.axes))
        if not lacks_x and not lacks_r:
            return at
        width = writer.r.block if lacks_r else 1
        return f"{at} + tl.zeros([{writer.x.block}, {width}], tl.int32)"

    def _add(self, write: Write, at: str, text: str, mask: str, scope: Scope) -> None:
        pointer = self.writer.bases[write.buffer]
        given = f", {mask}" if mask else ""
        if not write.terms and not write.ordered:
            old = f"tl.load({pointer} + {at}{given})"
            if write.dtype in REDUCED:
                old = f"{old}.to(tl.float32)"
            total = f"({old} | {text})" if write.dtype == "bool" else f"({old} + {text})"
            self.put(write.buffer, at, total, mask, scope, write.origins)
            return
        if write.dtype not in ATOMIC:
            raise Unwritable(f"no atomic addition of {write.dtype}")
        value = f"({text}).to({TYPES[write.dtype]})" if write.dtype in REDUCED else text
        value = f"tl.broadcast_to({value}, ({pointer} + {at}).shape)"
        scope.add(f'tl.atomic_add({pointer} + {at}, {value}{given}, sem="relaxed")', write.origins)

    def put(
        self,
        buffer: str,
        at: str,
        text: str,
        mask: str,
        scope: Scope,
        origins: tuple[str, ...] = (),
        hint: str = "",
    ) -> None:
        """Store a value."""
        given = (f", {mask}" if mask else "") + hint
        pointer = self.writer.bases[buffer]
        where = pointer if at == "0" else f"{pointer} + {at}"
        scope.add(f"tl.store({where}, {text}{given})", origins)


def _exact(writer: Writer) -> set[Expression]:
    """Expressions that are seen with all their bits: not only rounded to 16, or not as floats."""
    facts, partials = writer.facts, writer.part.partials
    expressions: set[Expression] = set()
    names: set[str] = set()
    for statement in reversed(writer.nest.statements):
        if isinstance(statement, Write):
            seen = statement.dtype not in REDUCED or bool(statement.terms)
        else:
            seen = statement.name in names or statement.name in partials
            seen = seen or statement.dtype not in (*REDUCED, "float32")
        parts = list(walk(statement.expression))
        if isinstance(statement, Write):
            parts += [part for term in statement.terms for part in walk(term.index)]
        # what a comparison or a rounding to an integer sees decides more than the last bits
        turns = [p for p in parts if isinstance(p, Op) and p.name in TURNS_OVER]
        behind = parts if seen else [part for turn in turns for part in walk(turn)]
        expressions.update(behind)
        names.update(part.name for part in behind if isinstance(part, Local))
        if seen:
            names.update(facts.locals_in(statement))
    return expressions
